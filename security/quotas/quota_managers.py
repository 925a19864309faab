"""The quotas of a broker's clients by kind, and what each client has used of them.

After Kafka's ClientQuotaManager, ClientRequestQuotaManager and ControllerMutationQuotaManager.
Whom no quota bounds is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple

from .alterations import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from .client_quotas import ClientQuotas, Sharing
from .entity import IP, ClientQuotaEntity
from .kept_sensors import KeptSensors, SensorT
from .rate import QuotaSensor, ThrottleTimes, TokenBucket


class Windows(NamedTuple):
    """How long is measured.

    Attributes:
        number: `quota.window.num`.
        length_ms: `quota.window.size.seconds`.
    """

    number: int
    length_ms: int


class ClientQuotaManager(Generic[SensorT]):
    """Quotas of one kind and what is measured against them.

    Args:
        key: Kafka's name of the quota.
        make_sensor: makes what measures, with a bound and at a time, and notes throttle times.

    Attributes:
        sensors: by those who share it. Kafka looks for a sensor at each request; whoever keeps one
            here has to let it go when it is forgotten, or its client would count apart from those
            who share its quota.
        throttles: of all of them, also of those that are forgotten.
    """

    def __init__(
        self,
        key: str,
        make_sensor: Callable[[float, int, ThrottleTimes], SensorT],
    ) -> None:
        self.key = key
        self.throttles = ThrottleTimes()
        self.quotas = ClientQuotas()
        self.sensors: KeptSensors[Sharing, SensorT] = KeptSensors()
        self._make_sensor: Callable[[float, int, ThrottleTimes], SensorT] = make_sensor

    def set(self, entity: ClientQuotaEntity, bound: float | None) -> None:
        """Set an entity's quota; it counts at once, and what has been used stays counted."""
        self.quotas.set(entity, bound)
        for sharing, sensor in list(self.sensors.items()):
            found = self.quotas.bound_of(sharing)
            if found is None:
                del self.sensors[sharing]
            else:
                sensor.bound = found

    def sensor_of(self, user: str, client_id: str, now_ms: int) -> SensorT | None:
        """What measures a client; None: nothing bounds it."""
        found = self.quotas.find(user, client_id)
        if found is None:
            return None
        sharing, bound = found
        sensor = self.sensors.get(sharing)
        if sensor is None:
            sensor = self._make_sensor(bound, now_ms, self.throttles)
            self.sensors.keep(sharing, sensor, now_ms)
        return sensor


class QuotaManagers:
    """The quotas of all kinds (Kafka's QuotaFactory.QuotaManagers).

    Args:
        windows: of bytes and times.
        controller_windows: of mutations (`controller.quota.window.num` and `.size.seconds`).

    Attributes:
        produce: bytes a second in Produce requests.
        fetch: bytes a second in answers to consumers.
        request: of one thread's time, in percent.
        mutation: partitions created and deleted a second.
    """

    def __init__(self, windows: Windows, controller_windows: Windows) -> None:

        def bytes_sensor(bound: float, now_ms: int, of_all: ThrottleTimes) -> QuotaSensor:
            return QuotaSensor(bound, *windows, of_all=of_all)

        def time_sensor(bound: float, now_ms: int, of_all: ThrottleTimes) -> QuotaSensor:
            return QuotaSensor(bound, *windows, windows.length_ms, of_all)

        def bucket(bound: float, now_ms: int, of_all: ThrottleTimes) -> TokenBucket:
            return TokenBucket(bound, *controller_windows, now_ms, of_all)

        self.produce = ClientQuotaManager(PRODUCER_BYTE_RATE, bytes_sensor)
        self.fetch = ClientQuotaManager(CONSUMER_BYTE_RATE, bytes_sensor)
        self.request = ClientQuotaManager(REQUEST_PERCENTAGE, time_sensor)
        self.mutation = ClientQuotaManager(CONTROLLER_MUTATION_RATE, bucket)

    def set(self, entity: ClientQuotaEntity, quotas: Mapping[str, float]) -> None:
        """An entity has these quotas, and no others."""
        if IP in entity.names:
            return
        self.produce.set(entity, quotas.get(PRODUCER_BYTE_RATE))
        self.fetch.set(entity, quotas.get(CONSUMER_BYTE_RATE))
        self.request.set(entity, quotas.get(REQUEST_PERCENTAGE))
        self.mutation.set(entity, quotas.get(CONTROLLER_MUTATION_RATE))

    @property
    def is_empty(self) -> bool:
        """Whether there are no quotas of clients at all."""
        return not any(
            map(len, (each.quotas for each in (self.produce, self.fetch, self.request)))
        ) and not len(self.mutation.quotas)

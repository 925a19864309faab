"""The quotas of a broker's clients by kind, and what each client has used of them.

After Kafka's ClientQuotaManager, ClientRequestQuotaManager and ControllerMutationQuotaManager.
Whom no quota bounds is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from .alterations import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from .client_quotas import ClientQuotas, Sharing
from .entity import IP, ClientQuotaEntity
from .rate import QuotaSensor, ThrottleTimes, TokenBucket

INACTIVE_MS: Final = 3_600_000
"""Who has used nothing for so long is forgotten (InactiveSensorExpirationTimeSeconds)."""
SWEEP_EVERY: Final = 1_000
"""So many new sensors come before the inactive ones are looked for."""

SensorT = TypeVar("SensorT", QuotaSensor, TokenBucket)


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
        sensors: by those who share it.
        throttles: of all of them, also of those that are forgotten.
        on_forgotten: called when sensors have been forgotten. Kafka looks for a sensor at each
            request; whoever keeps one here has to let it go, or its client would count apart from
            those who share its quota.
    """

    def __init__(
        self,
        key: str,
        make_sensor: Callable[[float, int, ThrottleTimes], SensorT],
    ) -> None:
        self.key = key
        self.throttles = ThrottleTimes()
        self.quotas = ClientQuotas()
        self.sensors: dict[Sharing, SensorT] = {}
        self.on_forgotten: Callable[[], None] = lambda: None
        self._make_sensor: Callable[[float, int, ThrottleTimes], SensorT] = make_sensor
        self._made = 0

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
            self._made += 1
            if self._made % SWEEP_EVERY == 0:
                self._forget_inactive(now_ms)
            sensor = self.sensors[sharing] = self._make_sensor(bound, now_ms, self.throttles)
            sensor.last_ms = now_ms
        return sensor

    def _forget_inactive(self, now_ms: int) -> None:
        inactive = [
            sharing
            for sharing, sensor in self.sensors.items()
            if now_ms - sensor.last_ms >= INACTIVE_MS
        ]
        for sharing in inactive:
            del self.sensors[sharing]
        if inactive:
            self.on_forgotten()


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

"""The quotas of a broker's clients, as far as there are any.

A broker on which nobody has set a quota imports nothing for it, and counts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ....common.errors import ErrorCode, KafkaError
from ....config.dynamic.dynamic_config import DynamicConfig
from ....runtime.clock import Clock
from ..requests import Request

if TYPE_CHECKING:
    from ....security.quotas.entity import ClientQuotaEntity
    from ....security.quotas.rate import TokenBucket
    from .quota_stage import QuotaStage


class MutationQuota:
    """What one request may still create and delete (Kafka's ControllerMutationQuota, KIP-599).

    Args:
        bucket: of its client; None: nothing bounds it.
        clock: the time.
        is_strict: whether what is above the quota is refused; else it is done, and only throttled.

    Attributes:
        throttle_ms: for how long the client is to wait.
    """

    def __init__(self, bucket: TokenBucket | None, clock: Clock, *, is_strict: bool) -> None:
        self.throttle_ms = 0
        self._bucket = bucket
        self._clock = clock
        self._is_strict = is_strict

    def record(self, partitions: int) -> None:
        """So many partitions are to be created or deleted.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED, and nothing is counted.
        """
        bucket = self._bucket
        if bucket is None:
            return
        now_ms = self._clock.monotonic_ms()
        throttle_ms = bucket.throttle_ms(now_ms) if self._is_strict else 0
        if throttle_ms:
            self._throttle(bucket, throttle_ms)
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded."
            )
        throttle_ms = bucket.record(partitions, now_ms)
        if throttle_ms and not self._is_strict:
            self._throttle(bucket, throttle_ms)

    def _throttle(self, bucket: TokenBucket, throttle_ms: int) -> None:
        if not self.throttle_ms:
            bucket.note_throttled(throttle_ms)
        self.throttle_ms = throttle_ms


class QuotaTable:
    """The quotas that are in force on this broker.

    Args:
        config: for how long is measured.
        clock: the time.
        use_stage: called with the stage that keeps requests to the quotas of clients once there
            are some, again when they change or sensors are forgotten, and with None when there are
            none any more.
        use_ip_quotas: called with the connection rates by address, None being the default's, when
            they change.

    Attributes:
        by_entity: each entity's quotas by Kafka's names; an entity without any is left out.
        stage: keeps requests to them; None while there are none of clients.
    """

    def __init__(
        self,
        config: DynamicConfig,
        clock: Clock,
        use_stage: Callable[[QuotaStage | None], None],
        use_ip_quotas: Callable[[Mapping[str | None, float]], None],
    ) -> None:
        self.by_entity: dict[ClientQuotaEntity, dict[str, float]] = {}
        self.stage: QuotaStage | None = None
        self._config = config
        self._clock = clock
        self._use_stage = use_stage
        self._use_ip_quotas = use_ip_quotas

    def mutation_quota(self, request: Request[object], strict_since: int) -> MutationQuota:
        """What a request may create and delete.

        Args:
            request: of whoever is to be bounded.
            strict_since: the version from which on clients know THROTTLING_QUOTA_EXCEEDED.
        """
        bucket = None
        if self.stage is not None:
            user = request.connection.principal.partition(":")[2]
            bucket = self.stage.managers.mutation.sensor_of(
                user, request.client_id, self._clock.monotonic_ms()
            )
        is_strict = request.api_version >= strict_since
        return MutationQuota(bucket, self._clock, is_strict=is_strict)

    def change(self, path: str, settings: Mapping[str, str]) -> None:
        """An entity's settings have changed.

        Args:
            path: below `/config`, of its node.
            settings: all that are there, which need not be quotas.
        """
        if not settings and not self.by_entity:
            return
        from ....security.quotas.alterations import CONNECTION_CREATION_RATE, quotas_of
        from ....security.quotas.entity import IP, ClientQuotaEntity

        entity = ClientQuotaEntity.from_path(path)
        if entity is None:
            return
        quotas = quotas_of(settings)
        if quotas == self.by_entity.get(entity, {}):
            return
        if quotas:
            self.by_entity[entity] = quotas
        else:
            del self.by_entity[entity]
        if IP in entity.names:
            self._use_ip_quotas(
                {
                    each.names[IP]: values[CONNECTION_CREATION_RATE]
                    for each, values in self.by_entity.items()
                    if IP in each.names and CONNECTION_CREATION_RATE in values
                }
            )
        else:
            self._change_stage(entity, quotas)

    def _change_stage(self, entity: ClientQuotaEntity, quotas: Mapping[str, float]) -> None:
        stage = self.stage
        if stage is None:
            from ....security.quotas.quota_managers import QuotaManagers, Windows
            from .quota_stage import QuotaStage

            config = self._config
            managers = QuotaManagers(
                Windows(config["quota.window.num"], config["quota.window.size.seconds"] * 1000),
                Windows(
                    config["controller.quota.window.num"],
                    config["controller.quota.window.size.seconds"] * 1000,
                ),
            )
            stage = self.stage = QuotaStage(
                managers, self._clock, lambda: self._use_stage(self.stage)
            )
        stage.set(entity, quotas)
        if stage.managers.is_empty:
            self.stage = None
        self._use_stage(self.stage)

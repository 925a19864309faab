"""What streams groups take from the broker's configuration, and from that of each group."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...runtime import ConfigurationValues
from ..consumer.settings import GroupConfigValues

STANDBY_REPLICAS = "num.standby.replicas"
"""The one setting of the assignor, as a group's record names it."""


class StreamsGroupSettings(NamedTuple):
    """The broker's settings that streams groups obey; the defaults are Kafka's.

    Attributes:
        is_enabled: whether group.coordinator.rebalance.protocols has `streams`.
    """

    is_enabled: bool = True
    max_size: int = 2_147_483_647
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    num_standby_replicas: int = 0
    initial_rebalance_delay_ms: int = 3_000
    assignment_interval_ms: int = 1_000

    def value(self, _group_id: str, name: str) -> Any:
        """The broker's setting behind a group's, where no group has configs of its own."""
        return getattr(self, name.removeprefix("streams.").replace(".", "_"))

    @classmethod
    def from_config(cls, config: ConfigurationValues) -> StreamsGroupSettings:
        """Read the settings out of a broker's configuration."""
        return cls(
            is_enabled="streams"
            in [name.lower() for name in config["group.coordinator.rebalance.protocols"]],
            max_size=config["group.streams.max.size"],
            session_timeout_ms=config["group.streams.session.timeout.ms"],
            heartbeat_interval_ms=config["group.streams.heartbeat.interval.ms"],
            num_standby_replicas=config["group.streams.num.standby.replicas"],
            initial_rebalance_delay_ms=config["group.streams.initial.rebalance.delay.ms"],
            assignment_interval_ms=config["group.streams.assignment.interval.ms"],
        )


class StreamsGroupConfigs:
    """What holds for each group: its own configs, else the broker's, within its bounds.

    Args:
        configs: what is set for groups.
    """

    def __init__(self, configs: GroupConfigValues) -> None:
        self._configs = configs

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may stay silent (`streams.session.timeout.ms`)."""
        return self._number(group_id, "streams.session.timeout.ms")

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to send heartbeats (`streams.heartbeat.interval.ms`)."""
        return self._number(group_id, "streams.heartbeat.interval.ms")

    def assignment_interval_ms(self, group_id: str) -> int:
        """How long a target assignment stands at least (`streams.assignment.interval.ms`)."""
        return self._number(group_id, "streams.assignment.interval.ms")

    def initial_rebalance_delay_ms(self, group_id: str) -> int:
        """How long a group without members waits for more of them, once one has come
        (`streams.initial.rebalance.delay.ms`)."""
        return self._number(group_id, "streams.initial.rebalance.delay.ms")

    def assignor_settings(self, group_id: str) -> dict[str, str]:
        """What the assignor is to heed, as a group's record keeps it."""
        return {STANDBY_REPLICAS: str(self._number(group_id, "streams.num.standby.replicas"))}

    def _number(self, group_id: str, name: str) -> int:
        number: int = self._configs.value(group_id, name)
        return number

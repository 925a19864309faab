"""What consumer groups take from the broker: its configuration, that of each group, topics."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from ...runtime import ConfigurationValues


class ConsumerGroupSettings(NamedTuple):
    """The broker's settings that consumer groups obey; the defaults are Kafka's.

    Attributes:
        is_enabled: whether group.coordinator.rebalance.protocols has `consumer`.
        assignors: names of the assignors, the first of which is the default.
        assignment_interval_ms: how long a target assignment stands at least.
        migration_policy: which groups change their type while they have members; see
            `migration.MigrationPolicy`.
        regex_refresh_interval_ms: how often regular expressions are resolved again.
    """

    is_enabled: bool = True
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2_147_483_647
    assignors: tuple[str, ...] = ("uniform", "range")
    assignment_interval_ms: int = 1_000
    migration_policy: str = "bidirectional"
    regex_refresh_interval_ms: int = 600_000

    def value(self, _group_id: str, name: str) -> Any:
        """The broker's setting behind a group's, where no group has configs of its own."""
        return getattr(self, name.removeprefix("consumer.").replace(".", "_"))

    @classmethod
    def from_config(cls, config: ConfigurationValues) -> ConsumerGroupSettings:
        """Read the settings out of a broker's configuration."""
        return cls(
            is_enabled="consumer"
            in [name.lower() for name in config["group.coordinator.rebalance.protocols"]],
            session_timeout_ms=config["group.consumer.session.timeout.ms"],
            heartbeat_interval_ms=config["group.consumer.heartbeat.interval.ms"],
            max_size=config["group.consumer.max.size"],
            assignors=tuple(config["group.consumer.assignors"]),
            assignment_interval_ms=config["group.consumer.assignment.interval.ms"],
            migration_policy=config["group.consumer.migration.policy"],
            regex_refresh_interval_ms=config["group.consumer.regex.refresh.interval.ms"],
        )


class GroupConfigValues(Protocol):
    """What consumer groups need of the configs of single groups; see `GroupConfigs`."""

    def value(self, group_id: str, name: str) -> Any:
        """What holds for a group."""


class GroupTimings:
    """The times that hold for each group: its own configs, else the broker's, within its bounds.

    Args:
        configs: what is set for groups.
    """

    def __init__(self, configs: GroupConfigValues) -> None:
        self._configs = configs

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may stay silent (`consumer.session.timeout.ms`)."""
        timeout_ms: int = self._configs.value(group_id, "consumer.session.timeout.ms")
        return timeout_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to send heartbeats (`consumer.heartbeat.interval.ms`)."""
        interval_ms: int = self._configs.value(group_id, "consumer.heartbeat.interval.ms")
        return interval_ms

    def assignment_interval_ms(self, group_id: str) -> int:
        """How long a target assignment stands at least (`consumer.assignment.interval.ms`)."""
        interval_ms: int = self._configs.value(group_id, "consumer.assignment.interval.ms")
        return interval_ms

"""What consumer groups take from the broker's configuration, and from that of each group."""

from __future__ import annotations

from typing import NamedTuple, Protocol

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


class GroupTimings(Protocol):
    """The times that hold for each group: the broker's, or those of the group's own configs."""

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may stay silent."""

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to send heartbeats."""

    def assignment_interval_ms(self, group_id: str) -> int:
        """How long a target assignment stands at least."""


class BrokerTimings:
    """`GroupTimings` where no group has configs of its own.

    Args:
        settings: the broker's.
    """

    def __init__(self, settings: ConsumerGroupSettings) -> None:
        self._settings = settings

    def session_timeout_ms(self, _group_id: str) -> int:
        """How long a member may stay silent."""
        return self._settings.session_timeout_ms

    def heartbeat_interval_ms(self, _group_id: str) -> int:
        """How often members are to send heartbeats."""
        return self._settings.heartbeat_interval_ms

    def assignment_interval_ms(self, _group_id: str) -> int:
        """How long a target assignment stands at least."""
        return self._settings.assignment_interval_ms

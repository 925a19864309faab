"""The times that hold for each consumer group: its own configs of resource type GROUP, else the
broker's, within the broker's bounds."""

from __future__ import annotations

from typing import Any, Protocol


class GroupConfigValues(Protocol):
    """All that is asked of the configs of groups; see `GroupConfigs`."""

    def value(self, group_id: str, name: str) -> Any:
        """What holds for a group."""


class ConfiguredTimings:
    """`GroupTimings` as groups are configured now.

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

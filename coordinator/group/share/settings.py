"""What share groups take from the broker's configuration, and from that of each group."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...runtime import ConfigurationValues
from ..consumer.settings import GroupConfigValues


class ShareGroupSettings(NamedTuple):
    """The broker's settings that share groups obey; the defaults are Kafka's."""

    max_size: int = 200
    initialize_retry_interval_ms: int = 30_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000

    def value(self, _group_id: str, name: str) -> Any:
        """The broker's setting behind a group's, where no group has configs of its own."""
        return getattr(self, name.removeprefix("share.").replace(".", "_"))

    @classmethod
    def from_config(cls, config: ConfigurationValues) -> ShareGroupSettings:
        """Read the settings out of a broker's configuration."""
        return cls(
            max_size=config["group.share.max.size"],
            initialize_retry_interval_ms=config["group.share.initialize.retry.interval.ms"],
            session_timeout_ms=config["group.share.session.timeout.ms"],
            heartbeat_interval_ms=config["group.share.heartbeat.interval.ms"],
            assignment_interval_ms=config["group.share.assignment.interval.ms"],
        )


class ShareGroupTimings:
    """The times that hold for each group: its own configs, else the broker's, within its bounds.

    Args:
        configs: what is set for groups.
    """

    def __init__(self, configs: GroupConfigValues) -> None:
        self._configs = configs

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member may stay silent (`share.session.timeout.ms`)."""
        timeout_ms: int = self._configs.value(group_id, "share.session.timeout.ms")
        return timeout_ms

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """How often members are to send heartbeats (`share.heartbeat.interval.ms`)."""
        interval_ms: int = self._configs.value(group_id, "share.heartbeat.interval.ms")
        return interval_ms

    def assignment_interval_ms(self, group_id: str) -> int:
        """How long a target assignment stands at least (`share.assignment.interval.ms`)."""
        interval_ms: int = self._configs.value(group_id, "share.assignment.interval.ms")
        return interval_ms

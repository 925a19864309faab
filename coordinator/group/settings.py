"""What the group coordinator takes from the broker's configuration, and its own limits."""

from __future__ import annotations

from typing import NamedTuple

from ...protocol.compression.codecs import Compression
from ..runtime import ConfigurationValues

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member may wait in its first JoinGroup. It has no session yet that could
expire, and a client that gave up and retried would leave one dead member per try (Kafka's
classicGroupNewMemberJoinTimeoutMs)."""


class GroupSettings(NamedTuple):
    """The settings that groups obey; the defaults are Kafka's."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2_147_483_647
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1000
    offsets_retention_check_interval_ms: int = 600_000
    offsets_commit_timeout_ms: int = 5_000
    offsets_topic_partitions: int = 50
    offsets_topic_compression: Compression = Compression.NONE

    @classmethod
    def from_config(cls, config: ConfigurationValues) -> GroupSettings:
        """Read the settings out of a broker's configuration.

        Raises:
            ValueError: there is no codec of the number given for the offsets topic.
        """
        return cls(
            min_session_timeout_ms=config["group.min.session.timeout.ms"],
            max_session_timeout_ms=config["group.max.session.timeout.ms"],
            initial_rebalance_delay_ms=config["group.initial.rebalance.delay.ms"],
            max_size=config["group.max.size"],
            offset_metadata_max_bytes=config["offset.metadata.max.bytes"],
            offsets_retention_ms=config["offsets.retention.minutes"] * 60 * 1000,
            offsets_retention_check_interval_ms=config["offsets.retention.check.interval.ms"],
            offsets_commit_timeout_ms=config["offsets.commit.timeout.ms"],
            offsets_topic_partitions=config["offsets.topic.num.partitions"],
            offsets_topic_compression=Compression(config["offsets.topic.compression.codec"]),
        )

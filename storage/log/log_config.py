"""The settings a log obeys, with Kafka's defaults (Kafka's LogConfig)."""

from __future__ import annotations

from ...common.named_tuple import NamedTuple
from ...common.sentinels import INT64_MAX

UNLIMITED = -1
HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS


class LogConfig(NamedTuple):
    """One topic's settings, resolved. Names are those of the topic configuration."""

    segment_bytes: int = 1024 * 1024 * 1024
    """A segment that would grow past this is closed and another begun."""
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    """An index that reaches this closes its segment; nothing is allocated beforehand."""
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1024 * 1024 + 12
    """The largest batch a producer may append, as it is sent, header included."""
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = UNLIMITED
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = INT64_MAX
    message_timestamp_after_max_ms: int = HOUR_MS
    flush_messages: int = INT64_MAX
    flush_ms: int = INT64_MAX
    file_delete_delay_ms: int = 60_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = INT64_MAX
    delete_retention_ms: int = DAY_MS
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    preallocate: bool = False
    producer_id_expiration_ms: int = DAY_MS

    @property
    def compacts(self) -> bool:
        """Whether only the last record of each key is kept in the end."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether old segments go by time and size."""
        return "delete" in self.cleanup_policy

    @property
    def uses_log_append_time(self) -> bool:
        """Whether records get the broker's time instead of the producer's."""
        return self.message_timestamp_type == "LogAppendTime"

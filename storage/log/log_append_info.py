"""What an append answers (Kafka's LogAppendInfo)."""

from __future__ import annotations

from ...common.named_tuple import NamedTuple


class LogAppendInfo(NamedTuple):
    """The offsets a batch got, or had got when it was sent before."""

    first_offset: int
    last_offset: int
    max_timestamp: int
    """Of its records, in ms."""
    log_append_time_ms: int
    """The broker's time where the topic asks for it, else -1. Of a duplicate always the
    first append's time, as Kafka answers it."""
    log_start_offset: int
    size: int
    """Bytes staged: 0 of a duplicate."""
    duplicate: bool = False
    """Whether it is in the log, or staged, already; then nothing more is staged."""

    @property
    def records_count(self) -> int:
        """How many offsets it takes."""
        return self.last_offset - self.first_offset + 1

"""Writes that partitions hosted here have refused: counted, and in the broker's log.

A full disk, batches that are not valid and records that are too large are refused to producers,
coordinators and followers alike. The log has a line with the reason for each kind and log
directory, and a count of those that follow (`common/log_lines.py`).
"""

from __future__ import annotations

import logging
from collections import Counter

from ..common.errors import ErrorCode, KafkaError
from ..common.log_lines import INTERVAL_S, one_class
from ..common.topic_partition import TopicPartition
from ..runtime.clock import Clock
from ..storage.errors import DISK_FULL

logger = logging.getLogger(__name__)

FULL_MS = 60_000
"""A disk that has refused a write for want of space counts as full for so long."""

ROUTINE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""What clients meet whenever a leader changes: they find the next one by it."""

Kind = tuple[ErrorCode, str]
"""An error, and the log directory in which it was met."""


class RefusedWrites:
    """Counts and logs what kinds of writes are refused.

    Args:
        clock: the time.

    Attributes:
        counts: how many of each kind, since the start.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.counts: Counter[Kind] = Counter()
        self._full_ms: dict[str, int] = {}
        self._noted_ms: dict[ErrorCode, int] = {}

    def note(self, refusal: KafkaError, log_directory: str, partition: TopicPartition) -> None:
        """A write was refused.

        Args:
            refusal: what it is answered, and why.
            log_directory: the folder that holds the partition's.
            partition: it was meant for.
        """
        code = refusal.code
        if code in ROUTINE:
            return
        kind = (code, log_directory)
        self.counts[kind] += 1
        self._noted_ms[code] = self._clock.monotonic_ms()
        cause = refusal.__cause__
        if isinstance(cause, OSError) and cause.errno in DISK_FULL:
            self._full_ms[log_directory] = self._clock.monotonic_ms()
        logger.warning(
            "a write to %s in %s was refused with %s: %s",
            partition,
            log_directory,
            code.name,
            refusal.message or "no reason given",
            extra=one_class(*kind),
        )

    def is_explained(self, error: ErrorCode) -> bool:
        """Whether the log has lately got a line with the reason of writes refused with an error."""
        noted_ms = self._noted_ms.get(error)
        return noted_ms is not None and self._clock.monotonic_ms() - noted_ms < INTERVAL_S * 1000

    def is_full(self, log_directory: str) -> bool:
        """Whether a log directory has lately refused a write for want of space."""
        full_ms = self._full_ms.get(log_directory)
        return full_ms is not None and self._clock.monotonic_ms() - full_ms < FULL_MS

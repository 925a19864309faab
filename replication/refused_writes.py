"""Refused writes in the broker's log: one line for each kind and disk, and one for all that follow.

A full disk, batches that are not valid and records that are too large meet every request alike, so
a line for each would fill the disk and hide everything else; none at all hides the cause. The first
refusal of a kind in a log directory is logged with its reason, those of the minute after it are
counted; producers, coordinators and followers are alike.
"""

from __future__ import annotations

import logging
from functools import partial

from ..common.errors import ErrorCode
from ..common.topic_partition import TopicPartition
from ..runtime.clock import Clock
from ..runtime.timers import Timers

logger = logging.getLogger(__name__)

INTERVAL_MS = 60_000
"""From the line of a refusal to the count of those that followed."""

ROUTINE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""What clients meet whenever a leader changes: they find the next one by it."""

Kind = tuple[ErrorCode, str]
"""An error, and the log directory in which it was met."""


class RefusedWrites:
    """Logs what kinds of writes are refused.

    Args:
        clock: the time.
        timers: where the ends of the intervals wait.
    """

    def __init__(self, clock: Clock, timers: Timers) -> None:
        self._clock = clock
        self._timers = timers
        self._suppressed: dict[Kind, int] = {}
        """How many refusals of a kind came since its line."""

    def note(
        self, code: ErrorCode, log_directory: str, partition: TopicPartition, reason: str | None
    ) -> None:
        """A write was refused.

        Args:
            code: what it is answered.
            log_directory: the folder that holds the partition's.
            partition: it was meant for.
            reason: a sentence.
        """
        if code in ROUTINE:
            return
        kind = (code, log_directory)
        if kind in self._suppressed:
            self._suppressed[kind] += 1
            return
        logger.warning(
            "a write to %s in %s was refused with %s: %s",
            partition,
            log_directory,
            code.name,
            reason or "no reason given",
        )
        self._begin_interval(kind)

    def _begin_interval(self, kind: Kind) -> None:
        self._suppressed[kind] = 0
        at_ms = self._clock.monotonic_ms() + INTERVAL_MS
        self._timers.schedule(at_ms, partial(self._end_interval, kind))

    def _end_interval(self, kind: Kind) -> None:
        count = self._suppressed.pop(kind)
        if count:
            code, log_directory = kind
            logger.warning(
                "%d more writes in %s were refused with %s in the last %d s",
                count,
                log_directory,
                code.name,
                INTERVAL_MS // 1000,
            )
            self._begin_interval(kind)

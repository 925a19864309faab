"""Which log is cleaned next, and what becomes of the result (Kafka's LogCleanerManager).

It runs on the broker's loop and never blocks for long; `CleaningRound` does the work in a
thread. What the thread made is put in place only if the log still has the segments it was made
of: a truncation, retention or the topic's deletion in between makes it void.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from ...common.errors import KafkaError
from ...common.named_tuple import NamedTuple
from ...common.sentinels import INT64_MAX
from ...common.topic_partition import TopicPartition
from ...runtime.clock import Clock
from ...runtime.steps import Steps, count_items
from ..errors import StorageError, is_disk_failure
from ..io.files import REAL_FILES, Files
from ..log.log import Log
from ..segment.log_segment import LogSegment
from ..segment.segment_reader import iter_headers
from ..segment.segment_swap import remove_cleaned
from .cleaned_segment import CleanedSegment
from .cleaner import CleaningRound
from .cleaner_checkpoints import CleanerCheckpoints
from .cleaning_plan import CleanerSettings, SourceSegment, plan_cleaning
from .offset_map import OffsetMapTooSmallError
from .throttler import CleanerThrottler, CleaningCancelled

logger = logging.getLogger(__name__)


class CleanableLog(NamedTuple):
    """A log as the cleaner sees it (Kafka's LogToClean)."""

    log: Log
    first_dirty_offset: int
    """From here on nothing was cleaned yet."""
    first_uncleanable_offset: int
    """Where the first segment begins that must be left alone."""
    clean_bytes: int
    cleanable_bytes: int
    """Of dirty segments that may be cleaned."""
    is_overdue: bool
    """Whether `max.compaction.lag.ms` has passed for a record in them."""

    @property
    def dirty_ratio(self) -> float:
        """How much of what a round reads is dirty."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_worth_it(self) -> bool:
        """Whether a round is due."""
        if self.cleanable_bytes == 0:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


class Cleaning:
    """One log that is being cleaned.

    Args:
        candidate: the log and its dirty part.
        round: for the thread.
    """

    def __init__(self, candidate: CleanableLog, round: CleaningRound) -> None:
        self.log = candidate.log
        self.round = round
        self.generation = self.log.generation
        self._segments = {segment.base_offset: segment for segment in self.log.segments}

    def sources_of(self, cleaned: CleanedSegment) -> list[LogSegment]:
        """The log's segments that a cleaned one is to replace.

        Raises:
            CleaningCancelled: the log is no longer what it was when the round began.
        """
        self.check(cleaned.sources)
        return [self._segments[source.base_offset] for source in cleaned.sources]

    def check(self, sources: Iterable[SourceSegment]) -> None:
        """Make sure that the log still has those segments, as they were.

        Raises:
            CleaningCancelled: it has not.
        """
        segments = self.log.segments
        is_same = self.log.generation == self.generation and all(
            segments[segments.floor_index(source.base_offset)] is self._segments[source.base_offset]
            for source in sources
        )
        if not is_same:
            raise CleaningCancelled


class LogCleanerManager:
    """Chooses logs and keeps their checkpoints.

    Args:
        logs: all logs of the broker by partition, read each time.
        directories: the paths of the log directories that are online, read each time.
        last_stable_offset_of: of a log, not above its high watermark; None if it has no replica
            here that would know.
        clock: the wall time counts.
        noted_recovery_point_of: the recovery point of a log in the checkpoint on the disk.
            Nothing after it is swapped in: a record may go only when the one that supersedes it
            is safe, and to a start a segment that ends before the next one begins has lost its
            tail, unless it was flushed.
    """

    def __init__(
        self,
        logs: Mapping[TopicPartition, Log],
        directories: Callable[[], Collection[str]],
        last_stable_offset_of: Callable[[TopicPartition], int | None],
        clock: Clock,
        files: Files = REAL_FILES,
        noted_recovery_point_of: Callable[[TopicPartition], int] = lambda _: INT64_MAX,
    ) -> None:
        self._noted_recovery_point_of = noted_recovery_point_of
        self._logs = logs
        self._last_stable_offset_of = last_stable_offset_of
        self._clock = clock
        self._files = files
        self._directories = directories
        self.checkpoints = CleanerCheckpoints(files)
        self.uncleanable: dict[TopicPartition, Log] = {}
        """Logs that raised an error which another try would raise again."""
        self.dirty_ratio_max = 0.0
        """Of the dirtiest log at the last look, from 0 to 1."""

    def find_filthiest(self) -> Steps[CleanableLog | None]:
        """The log that needs cleaning most, if any is dirty enough."""
        self.checkpoints.use_directories(self._directories())
        self.checkpoints.keep_only(self._logs)
        for topic_partition, log in list(self.uncleanable.items()):
            if self._logs.get(topic_partition) is not log:
                del self.uncleanable[topic_partition]
        now_ms = self._clock.now_ms()
        filthiest: CleanableLog | None = None
        dirty_ratio_max = 0.0
        for topic_partition, log in list(self._logs.items()):
            yield
            if self._logs.get(topic_partition) is not log:
                continue
            if not log.config.compacts or len(log.segments) == 1:
                continue  # the active segment is never cleaned
            if topic_partition in self.uncleanable:
                continue
            candidate = self._examine(log, now_ms)
            if candidate is None:
                continue
            yield from count_items(len(log.segments))
            dirty_ratio_max = max(dirty_ratio_max, candidate.dirty_ratio)
            if candidate.is_worth_it and (
                filthiest is None or candidate.dirty_ratio > filthiest.dirty_ratio
            ):
                filthiest = candidate
        self.dirty_ratio_max = dirty_ratio_max
        return filthiest

    def _examine(self, log: Log, now_ms: int) -> CleanableLog | None:
        first_dirty_offset = self.checkpoints.first_dirty_offset(log)
        if first_dirty_offset >= log.segments.active.base_offset:
            return None  # most logs are idle, and there may be thousands
        last_stable_offset = self._last_stable_offset_of(log.topic_partition)
        if last_stable_offset is None:
            return None
        try:
            return self._measure(log, first_dirty_offset, last_stable_offset, now_ms)
        except (OSError, KafkaError) as error:
            self._note_failure(log, error)
            return None

    def _measure(
        self, log: Log, first_dirty_offset: int, last_stable_offset: int, now_ms: int
    ) -> CleanableLog:
        """How much of a log can be cleaned (Kafka's LogCleanerManager.cleanableOffsets).

        The active segment cannot, nor what is not replicated or in an open transaction, nor what
        is younger than `min.compaction.lag.ms`.
        """
        segments = list(log.segments)
        active_index = len(segments) - 1
        first_dirty_index = log.segments.floor_index(first_dirty_offset)
        dirty_closed = segments[first_dirty_index:active_index]
        limit = min(last_stable_offset, log.segments.active.base_offset)
        lag_ms = max(log.config.min_compaction_lag_ms, 0)
        if lag_ms > 0:
            for segment in dirty_closed:
                if segment.largest_timestamp() > now_ms - lag_ms:
                    limit = min(limit, segment.base_offset)
                    break
        # A segment is cleaned whole or not at all.
        uncleanable_index = log.segments.floor_index(max(first_dirty_offset, limit))
        max_lag_ms = log.config.max_compaction_lag_ms
        return CleanableLog(
            log,
            first_dirty_offset,
            segments[uncleanable_index].base_offset,
            sum(each.size for each in segments if each.base_offset < first_dirty_offset),
            sum(each.size for each in segments[first_dirty_index:uncleanable_index]),
            max_lag_ms < INT64_MAX
            and any(
                0 < self._first_timestamp(segment) < now_ms - max_lag_ms for segment in dirty_closed
            ),
        )

    def _first_timestamp(self, segment: LogSegment) -> int:
        """The latest timestamp of a segment's first batch, -1 if there is none."""
        if segment.first_timestamp < 0 and segment.size:
            for _, batch in iter_headers(self._files.open(segment.log_path), 0, segment.size):
                segment.first_timestamp = batch.max_timestamp
                break
        return segment.first_timestamp

    def begin(
        self, candidate: CleanableLog, settings: CleanerSettings, throttler: CleanerThrottler
    ) -> Cleaning:
        """Plan a round."""
        plan = plan_cleaning(
            self._files,
            candidate.log,
            candidate.first_dirty_offset,
            candidate.first_uncleanable_offset,
            self._clock.now_ms(),
            settings,
        )
        return Cleaning(candidate, CleaningRound(plan, throttler))

    def swap_in(self, cleaning: Cleaning, cleaned: CleanedSegment) -> None:
        """Put a cleaned segment in the place of those it was made of.

        Raises:
            CleaningCancelled: the log is no longer what it was; what was made is removed.
        """
        log = cleaning.log
        try:
            if self._logs.get(log.topic_partition) is not log:
                raise CleaningCancelled
            noted_recovery_point = self._noted_recovery_point_of(log.topic_partition)
            if cleaned.sources[-1].end_offset > noted_recovery_point:
                raise CleaningCancelled
            sources = cleaning.sources_of(cleaned)
        except CleaningCancelled:
            self.discard(cleaning, cleaned)
            raise
        log.replace_segments(sources, cleaned.suffixes, self._clock.now_ms())

    def discard(self, cleaning: Cleaning, cleaned: CleanedSegment) -> None:
        """Remove a cleaned segment that cannot be used."""
        with suppress(OSError):  # its folder may be gone; if not, the next round does it
            remove_cleaned(self._files, cleaning.log.directory, cleaned.base_offset)

    def finished(self, cleaning: Cleaning) -> None:
        """All groups were swapped in: the log is clean up to where the round came."""
        if cleaning.log.generation == cleaning.generation:
            self.checkpoints.cleaned(cleaning.log, cleaning.round.end_offset)

    def failed(self, cleaning: Cleaning, error: Exception) -> None:
        """A round ended with an error, which must not recur forever."""
        try:
            cleaning.check(cleaning.round.plan.segments)
        except CleaningCancelled:
            return  # it read a log that was being truncated or deleted
        self._note_failure(cleaning.log, error)

    def _note_failure(self, log: Log, error: Exception) -> None:
        """A full disk may have space later. A failing one takes its directory offline. What
        cannot be read as batches is left alone until the broker restarts.
        """
        if isinstance(error, OSError):
            logger.warning("cleaning %s failed: %s", log.topic_partition, error)
            if is_disk_failure(error):
                log.owner.disk_failed(log.directory, error)
        elif isinstance(error, StorageError | OffsetMapTooSmallError):
            logger.warning("cleaning %s failed: %s", log.topic_partition, error)
        else:
            known = isinstance(error, KafkaError)
            logger.error(
                "marking %s as uncleanable: %s",
                log.topic_partition,
                error,
                exc_info=None if known else error,
            )
            self.uncleanable[log.topic_partition] = log

"""Which log is cleaned next, and what becomes of the result (Kafka's LogCleanerManager).

It lives on the broker's loop and never blocks for long; `CleaningRound` does the work in a
thread. What the thread made is put in place only if the log still has the segments it was
made of: a cut, retention or the topic's deletion in between makes it void.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX
from ...common.topic_partition import TopicPartition
from ...runtime.clock import Clock
from ..errors import StorageError, is_disk_failure
from ..io.files import REAL_FILES, Files
from ..log.log import Log
from ..segment.log_segment import LogSegment
from ..segment.segment_swap import remove_cleaned
from .cleaner import CleaningRound
from .cleaner_candidates import CleanableLog, examine
from .cleaner_checkpoints import CleanerCheckpoints
from .cleaner_pace import CleanerPace, CleaningCancelled
from .cleaner_plan import CleanerSettings, SourceSegment, plan_cleaning
from .cleaner_segment import CleanedSegment
from .offset_map import NoRoomForKeysError

logger = logging.getLogger(__name__)


class Cleaning:
    """One log in the course of being cleaned.

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


class CleanerManager:
    """Chooses logs and keeps their checkpoints.

    Args:
        logs: all logs of the broker by partition, looked at anew each time.
        directories: the paths of the log directories that are online, asked for anew each time.
        last_stable_offset_of: of a log, not above its high watermark; None if it has no replica
            here that would know.
        clock: the wall time counts.
        files: the file system.
        noted_recovery_point_of: up to where the checkpoint on the disk says that a log is
            flushed. Nothing behind it is swapped in: a record may go only when the one that
            supersedes it is safe, and a start takes a segment that ends before the next one
            begins for one that lost its tail, unless it was flushed.
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

    def find_filthiest(self) -> CleanableLog | None:
        """The log that needs cleaning most, if any is dirty enough."""
        self.checkpoints.use_directories(self._directories())
        self.checkpoints.keep_only(self._logs)
        for topic_partition, log in list(self.uncleanable.items()):
            if self._logs.get(topic_partition) is not log:
                del self.uncleanable[topic_partition]
        now_ms = self._clock.now_ms()
        filthiest: CleanableLog | None = None
        self.dirty_ratio_max = 0.0
        for topic_partition, log in self._logs.items():
            if not log.config.compacts or len(log.segments) == 1:
                continue  # the active segment is never cleaned
            if topic_partition in self.uncleanable:
                continue
            candidate = self._examine(log, now_ms)
            if candidate is None:
                continue
            self.dirty_ratio_max = max(self.dirty_ratio_max, candidate.dirty_ratio)
            if candidate.is_worth_it and (
                filthiest is None or candidate.dirty_ratio > filthiest.dirty_ratio
            ):
                filthiest = candidate
        return filthiest

    def _examine(self, log: Log, now_ms: int) -> CleanableLog | None:
        first_dirty_offset = self.checkpoints.first_dirty_offset(log)
        if first_dirty_offset >= log.segments.active.base_offset:
            return None  # most logs are idle, and there may be thousands
        last_stable_offset = self._last_stable_offset_of(log.topic_partition)
        if last_stable_offset is None:
            return None
        try:
            return examine(self._files, log, first_dirty_offset, last_stable_offset, now_ms)
        except (OSError, KafkaError) as error:
            self._note_failure(log, error)
            return None

    def begin(
        self, candidate: CleanableLog, settings: CleanerSettings, pace: CleanerPace
    ) -> Cleaning:
        """Plan a round.

        Raises:
            StorageError: the disk fails.
        """
        plan = plan_cleaning(
            self._files,
            candidate.log,
            candidate.first_dirty_offset,
            candidate.first_uncleanable_offset,
            self._clock.now_ms(),
            settings,
        )
        return Cleaning(candidate, CleaningRound(plan, pace))

    def swap_in(self, cleaning: Cleaning, cleaned: CleanedSegment) -> None:
        """Put a cleaned segment in the place of those it was made of.

        Raises:
            CleaningCancelled: the log is no longer what it was; what was made is removed.
            StorageError: the disk fails.
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
        """A round ended with an error: see to it that it does not do so again and again."""
        try:
            cleaning.check(cleaning.round.plan.segments)
        except CleaningCancelled:
            return  # it read a log that was being cut or deleted
        self._note_failure(cleaning.log, error)

    def _note_failure(self, log: Log, error: Exception) -> None:
        """A full disk may have room later. A failing one takes its directory offline. What
        cannot be read as batches is left alone until the broker starts anew.
        """
        if isinstance(error, OSError):
            logger.warning("cleaning %s failed: %s", log.topic_partition, error)
            if is_disk_failure(error):
                log.owner.disk_failed(log.directory, error)
        elif isinstance(error, StorageError | NoRoomForKeysError):
            logger.warning("cleaning %s failed: %s", log.topic_partition, error)
        else:
            known = isinstance(error, KafkaError)
            logger.error(
                "%s is not cleaned any more: %s",
                log.topic_partition,
                error,
                exc_info=None if known else error,
            )
            self.uncleanable[log.topic_partition] = log

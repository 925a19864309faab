"""Opening a log: finding its segments, or making the first (Kafka's LogLoader).

After a clean shutdown the files are trusted. Otherwise every segment from the recovery point on
is read through; the log ends at the first batch that is torn, corrupt or missing, and what
follows it is cut off, and kept beside the log (`cut_files`). The order of the steps is the order in
which it is safe to lose power again: first what lies after the end is taken out of the log durably,
and only then the segment is truncated.
"""

from __future__ import annotations

import logging
import os.path
from collections.abc import Sequence
from contextlib import suppress

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX, NO_PRODUCER_ID
from ...common.topic_partition import TopicPartition
from ...protocol.records.batch import LOG_OVERHEAD_BYTES, RecordBatch
from ..checkpoint.partition_metadata import read_topic_id, write_topic_id
from ..epoch.epoch_check import rebuild_epochs
from ..epoch.leader_epoch_file_cache import LeaderEpochFileCache
from ..errors import LogDirectoryError
from ..file_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    PARTITION_METADATA_FILE,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from ..io.files import REAL_FILES, Files
from ..log.log import Log
from ..log.log_config import LogConfig
from ..producer_state.producer_replay import ProducerReplay
from ..producer_state.producer_state_manager import ProducerStateManager
from ..segment.log_segment import OFFSETS_MAX, LogSegment, StagedBatch
from ..segment.log_segments import LogSegments
from ..segment.segment_reader import iter_headers, iter_valid_headers, read_batch
from ..segment.segment_swap import complete_swaps
from .cut_files import cut_path, keep_tail, remove_old_cuts
from .transaction_index_check import find_corrupt_transaction_indexes, find_lost_transaction_indexes

logger = logging.getLogger(__name__)

INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
BATCHES_PER_STEP = 256
"""So many batches of a segment are noted at once: the call costs as much as noting one."""
TEMPORARY_SUFFIX = ".tmp"
"""Of files that an interrupted write leaves behind."""


def load_log(
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    *,
    files: Files = REAL_FILES,
    now_ms: int = 0,
    clean_shutdown: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    aborted_count: int = 0,
    topic_id: bytes | None = None,
    gaps_end: int | None = None,
) -> Log:
    """Open the log in a folder, making it if there is none.

    Args:
        directory: the partition's folder.
        config: the topic's settings.
        now_ms: the wall time.
        clean_shutdown: whether all was written and closed properly.
        recovery_point: everything before it is on the disk.
        log_start_offset: the first offset that may be read, as last noted.
        aborted_count: how many aborted transactions its transaction indexes named at the clean
            shutdown, as noted then; 0 where nobody did.
        topic_id: of the topic, if known.
        gaps_end: the log was compacted up to here, so that offsets may be missing; None
            where that is not known.

    Raises:
        KafkaError: INCONSISTENT_TOPIC_ID, the folder is of another topic of that name.
    """
    loader = _LogLoader(directory, topic_partition, config, files, now_ms)
    if not files.exists(directory):
        return loader.create(topic_id)
    if gaps_end is None:
        gaps_end = INT64_MAX if config.compacts else 0
    loader.recovery_point, loader.gaps_end = recovery_point, gaps_end
    loader.aborted_count = aborted_count
    try:
        log = loader.load(log_start_offset, clean_shutdown=clean_shutdown)
    except KafkaError:
        if not clean_shutdown:
            raise
        # The files are not what a clean shutdown leaves.
        log = loader.load(log_start_offset, clean_shutdown=False)
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    return log


class _LogLoader:
    """Opens the log in one folder.

    Attributes:
        recovery_point: see `load_log`.
        gaps_end: see `load_log`.
        aborted_count: see `load_log`.
        epochs: which leader epoch began where.
        replay: the producers' states while segments are read through.
    """

    recovery_point: int
    gaps_end: int
    aborted_count: int
    epochs: LeaderEpochFileCache
    replay: ProducerReplay

    def __init__(
        self,
        directory: str,
        topic_partition: TopicPartition,
        config: LogConfig,
        files: Files,
        now_ms: int,
    ) -> None:
        self._directory = directory
        self._topic_partition = topic_partition
        self._config = config
        self._files = files
        self._now_ms = now_ms

    def create(self, topic_id: bytes | None) -> Log:
        """A log in a new folder, with as few files as possible: a topic may have many logs."""
        self._files.make_directory(self._directory)
        if topic_id is not None:
            write_topic_id(self._files, self._directory, topic_id)
        self.epochs = LeaderEpochFileCache(self._files, self._directory, is_new=True)
        return self._log([self._new_segment(0)], 0, 0, 0, topic_id)

    def load(self, log_start_offset: int, *, clean_shutdown: bool) -> Log:
        """The log in a folder that exists. Raises `KafkaError` where a batch is none."""
        directory, files = self._directory, self._files
        self.epochs = epochs = LeaderEpochFileCache(files, directory)
        found, corrupt = self._find_segments()
        topic_id, found = self._read_topic_id(found, clean_shutdown=clean_shutdown)
        corrupt |= find_corrupt_transaction_indexes(found)
        if clean_shutdown:
            corrupt |= find_lost_transaction_indexes(found, self.aborted_count)
        visible_from = max(log_start_offset, found[0].base_offset) if found else log_start_offset
        self.replay = ProducerReplay(files, directory, self._topic_partition, found, visible_from)
        if found and not clean_shutdown:
            found = self._recover(found, log_start_offset)
        for segment in found:
            if segment.base_offset in corrupt and not segment.offset_index.is_trusted:
                self._reindex_segment(segment)
        end_offset = found[-1].next_offset() if found else log_start_offset
        if end_offset < log_start_offset and clean_shutdown:
            logger.warning(
                "%s ends at %d, so it cannot start at %d as the checkpoint says: it starts with "
                "its first segment",
                self._topic_partition,
                end_offset,
                log_start_offset,
            )
            log_start_offset = 0
        elif end_offset < log_start_offset:  # the crash took what was left to read
            logger.warning(
                "%s ends at %d, before its start %d: what is left of it was deleted before the "
                "crash and is removed now",
                self._topic_partition,
                end_offset,
                log_start_offset,
            )
            self._delete_durably(found)
            found, end_offset = [], log_start_offset
            epochs.clear()
        if not found:
            found = [self._new_segment(end_offset)]
        found[-1].load_for_appends()
        log_start_offset = max(log_start_offset, found[0].base_offset)
        if not epochs.entries or epochs.entries[0][1] > log_start_offset:
            # The checkpoint is missing or corrupt, or knows only a later start of the log.
            rebuild_epochs(found, epochs, log_start_offset)
        epochs.truncate_from_end(end_offset)
        epochs.truncate_from_start(log_start_offset)
        epochs.flush()
        recovery_point = end_offset
        if not clean_shutdown:
            flushed = [
                each.base_offset for each in found if each.base_offset <= self.recovery_point
            ]
            flushed_to = max(flushed, default=found[0].base_offset)
            recovery_point = min(flushed_to, self.recovery_point, end_offset)
        log = self._log(found, log_start_offset, end_offset, recovery_point, topic_id)
        log.rebuild_producer_state(self._now_ms, self.replay.producers_at(end_offset))
        return log

    def _log(
        self,
        segments: list[LogSegment],
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        topic_id: bytes | None,
    ) -> Log:
        return Log(
            self._files,
            self._directory,
            self._topic_partition,
            self._config,
            LogSegments(segments),
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=recovery_point,
            epochs=self.epochs,
            producers=ProducerStateManager(self._topic_partition),
            topic_id=topic_id,
        )

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    def _new_segment(self, base_offset: int) -> LogSegment:
        return LogSegment(
            self._files, self._directory, base_offset, self._config, self._now_ms, is_new=True
        )

    def _read_topic_id(
        self, segments: list[LogSegment], *, clean_shutdown: bool
    ) -> tuple[bytes | None, list[LogSegment]]:
        """The topic id if it is known, and the segments that the log begins with.

        A crash may have torn the id of a log that was never flushed. Whose its batches are cannot
        be told then: by now the topic may have been deleted, and another one made under its name.
        """
        try:
            return read_topic_id(self._files, self._directory), segments
        except LogDirectoryError as error:
            was_closed = clean_shutdown and any(each.size or each.base_offset for each in segments)
            if self.recovery_point > 0 or was_closed:
                raise
            logger.warning("%s; nothing in the log was flushed, so it is written again", error)
        if any(each.size for each in segments):
            kept = self._keep_cut(segments)
            segments = []
            self.epochs.clear()
            logger.warning(
                "%s is empty after a crash: whose batches there were cannot be told any more, and "
                "none of them was flushed. They are kept in %s",
                self._topic_partition,
                ", ".join(kept),
            )
        # Removed now, since a flush may make the log count as flushed before another is written.
        self._files.remove(self._path(PARTITION_METADATA_FILE))
        return None, segments

    def _find_segments(self) -> tuple[list[LogSegment], set[int]]:
        """The segments, and the base offsets of those that lack an index."""
        names = set(complete_swaps(self._files, self._directory))
        remove_old_cuts(self._files, self._directory, names, self._now_ms)
        segments = []
        corrupt: set[int] = set()
        for name in sorted(names):
            stem, suffix = os.path.splitext(name)
            if suffix == TEMPORARY_SUFFIX:
                self._files.remove(self._path(name))
            elif not stem.isdigit():
                continue
            elif suffix in INDEX_SUFFIXES and stem + LOG_SUFFIX not in names:
                self._files.remove(self._path(name))
            elif suffix == LOG_SUFFIX:
                segment = LogSegment(
                    self._files,
                    self._directory,
                    int(stem),
                    self._config,
                    self._now_ms,
                    is_new=False,
                )
                if stem + INDEX_SUFFIX not in names or stem + TIME_INDEX_SUFFIX not in names:
                    corrupt.add(segment.base_offset)
                if stem + TRANSACTION_INDEX_SUFFIX in names:
                    _ = segment.transaction_index  # made, so that lookups include it
                segments.append(segment)
        return segments, corrupt

    # --- after a crash -----------------------------------------------------------------

    def _recover(self, segments: Sequence[LogSegment], log_start_offset: int) -> list[LogSegment]:
        """Read through what was not flushed, and end the log where it is broken.

        Segments wholly before `log_start_offset` are never read again, so they are left out.
        A segment that ends before the next one begins has lost its tail, unless compaction can
        have taken its last offsets, which it can before `gaps_end`.

        Returns:
            The segments that are left.
        """
        first = _first_unflushed(segments, max(self.recovery_point, log_start_offset))
        self.epochs.truncate_from_end(segments[first].base_offset)
        for index in range(first, len(segments)):
            segment = segments[index]
            later = segments[index + 1 :]
            if self._recover_segment(segment, later):
                return list(segments[: index + 1])
            if not later:
                break
            end_offset, begin = segment.next_offset(), later[0].base_offset
            if end_offset > begin or end_offset < begin > self.gaps_end:
                why = f"the next segment begins at {begin}"
                self._report_cut(segment, end_offset, why, self._keep_cut(later))
                return list(segments[: index + 1])
        return list(segments)

    def _recover_segment(self, segment: LogSegment, later: Sequence[LogSegment]) -> bool:
        """Rebuild a segment's indexes and truncate a torn or corrupt tail, which is kept beside.

        Args:
            segment: its size and indexes are what the files say, not to be trusted.
            later: cut off before anything is truncated.

        Returns:
            Whether anything was truncated.
        """
        self.replay.begin(segment)
        file = segment.file
        end = file.size()
        segment.reset()
        next_offset = segment.base_offset
        last_offset_max = segment.base_offset + OFFSETS_MAX
        latest_epoch = self.epochs.latest_epoch
        found: list[StagedBatch] = []
        for chunk, at, header in iter_valid_headers(file, end):
            base_offset, length, epoch, _, _, _, delta, _, max_timestamp, producer_id, _, _, _ = (
                header
            )
            last_offset = base_offset + delta
            if base_offset < next_offset or last_offset > last_offset_max:
                break
            if epoch > latest_epoch:
                self.epochs.assign(epoch, base_offset)
                latest_epoch = self.epochs.latest_epoch
            size = length + LOG_OVERHEAD_BYTES
            found.append((base_offset, last_offset, max_timestamp, size, epoch))
            if len(found) == BATCHES_PER_STEP:
                segment.published(found)
                found = []
            if producer_id > NO_PRODUCER_ID:
                self.replay.take(segment, RecordBatch(chunk, at))
            next_offset = last_offset + 1
        segment.published(found)
        is_torn = segment.size < end
        if is_torn:
            tail = keep_tail(self._files, segment.log_path, segment.size, end, self._now_ms)
            kept = [tail] if tail is not None else []
            kept += self._keep_cut(later)
            why = f"what lies at byte {segment.size} of {end} is no whole batch"
            self._report_cut(segment, next_offset, why, kept)
            segment.cut_file()
        segment.close_for_appends()
        self.replay.end(segment, next_offset)
        return is_torn

    def _reindex_segment(self, segment: LogSegment) -> None:
        """Rebuild the indexes of a flushed segment from its batches.

        Its batches are left alone, whatever is wrong with them: at something that is no batch
        the indexes end, and readers there get an error.
        """
        segment.rebuild_indexes("an index is missing or damaged")
        self.replay.begin(segment)
        segment.transaction_index.reset()
        next_offset = segment.base_offset
        try:
            for position, header in iter_headers(segment.file, 0, segment.size):
                batch = header
                if header.is_control:
                    batch = read_batch(segment.file, position, header.size_in_bytes)
                self.replay.take(segment, batch)
                next_offset = batch.next_offset
        except KafkaError:
            pass  # the indexes end here, too
        segment.flush_indexes()
        self.replay.end(segment, next_offset)

    def _keep_cut(self, segments: Sequence[LogSegment]) -> list[str]:
        """Take segments out of the log so that no crash brings them back, but keep their batches.

        The last goes first: if that is interrupted, those left follow each other.

        Returns:
            Where their batches are now, the first first.
        """
        kept = []
        for segment in reversed(segments):
            path = cut_path(segment.log_path, 0, self._now_ms)
            segment.keep_cut(path)
            kept.append(path)
        if segments:
            self._files.sync_directory(self._directory)
        return kept[::-1]

    def _report_cut(
        self, segment: LogSegment, end_offset: int, why: str, kept: Sequence[str]
    ) -> None:
        """Log what is cut off the log behind a segment, and how to see it."""
        if not kept:
            logger.warning(
                "%s ends at offset %d after a crash: %s, and nothing follows that could be kept",
                segment.log_path,
                end_offset,
                why,
            )
            return
        import shlex  # a start that cuts nothing does without

        last_offset = self._last_offset_in(kept)
        logger.warning(
            "%s ends at offset %d after a crash: %s. Cut off and kept in %d files: offsets %d to "
            "%s. To see them: odradek log dump --records %s",
            segment.log_path,
            end_offset,
            why,
            len(kept),
            end_offset,
            "an unknown one" if last_offset is None else last_offset,
            " ".join(shlex.quote(path) for path in kept),
        )

    def _last_offset_in(self, kept: Sequence[str]) -> int | None:
        """The last offset that can be found in the last of those files."""
        file = self._files.open(kept[-1])
        last_offset = None
        with suppress(KafkaError):  # from there on it is no log
            for _, batch in iter_headers(file, 0, file.size()):
                last_offset = batch.last_offset
        return last_offset

    def _delete_durably(self, segments: Sequence[LogSegment]) -> None:
        """Remove segments so that no crash brings them back.

        The last goes first: if that is interrupted, those left follow each other.
        """
        for segment in reversed(segments):
            segment.delete()
        if segments:
            self._files.sync_directory(self._directory)


def _first_unflushed(segments: Sequence[LogSegment], flushed_end: int) -> int:
    """The first segment that may reach past `flushed_end`; the last one always may."""
    for index in range(len(segments) - 1):
        if segments[index + 1].base_offset > flushed_end:
            return index
    return len(segments) - 1

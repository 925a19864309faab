"""Opening a log: finding its segments, or making the first (Kafka's LogLoader).

After a clean shutdown the files are taken at their word. Otherwise every segment from
the recovery point on is read through, cut at the first batch that is torn or corrupt,
and what lies behind the cut is removed.
"""

from __future__ import annotations

import logging
import os.path

from ...common.errors import KafkaError
from ...common.sentinels import INT64_MAX
from ...common.topic_partition import TopicPartition
from ..checkpoint.partition_metadata import FILE_NAME as PARTITION_METADATA
from ..checkpoint.partition_metadata import read_topic_id, write_topic_id
from ..epoch.leader_epoch_cache import LeaderEpochCache
from ..errors import LogDirectoryError
from ..io.files import REAL_FILES, Files
from ..log.log import Log
from ..log.log_config import LogConfig
from ..producer_state.producer_state_manager import ProducerStateManager
from ..segment.log_segment import LogSegment
from ..segment.log_segments import LogSegments
from ..segment.segment_swap import complete_swaps
from .log_recovery import recover_epochs, recover_unflushed, remove_for_good
from .segment_recovery import reindex_segment
from .transaction_recovery import ProducerReplay, find_damaged_transaction_indexes

logger = logging.getLogger(__name__)

EPOCHS_FILE = "leader-epoch-checkpoint"
INDEX_SUFFIXES = (".index", ".timeindex", ".txnindex")
LEFTOVERS = (".tmp",)
"""Suffixes of files that an interrupted write leaves behind."""


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
    topic_id: bytes | None = None,
    gaps_end: int | None = None,
) -> Log:
    """Open the log in a folder, making it if there is none.

    Args:
        directory: the partition's folder.
        topic_partition: whose log it is.
        config: the topic's settings.
        files: the file system.
        now_ms: the wall time.
        clean_shutdown: whether all was written and closed properly.
        recovery_point: everything before it is on the disk for sure.
        log_start_offset: the first offset that may be read, as last noted.
        topic_id: of the topic, if known.
        gaps_end: the log was compacted up to here, so that offsets may be missing; None
            where that is not known.

    Raises:
        OSError: the disk fails.
        KafkaError: INCONSISTENT_TOPIC_ID, the folder is of another topic of that name.
    """
    if not files.exists(directory):
        return _make_log(directory, topic_partition, config, files, now_ms, topic_id)
    if gaps_end is None:
        gaps_end = INT64_MAX if config.compacts else 0
    arguments = (directory, topic_partition, config, files, now_ms, log_start_offset, gaps_end)
    if clean_shutdown:
        try:
            log = _load(*arguments, clean_shutdown=True, recovery_point=recovery_point)
        except KafkaError:  # the files are not what a clean shutdown leaves
            log = _load(*arguments, clean_shutdown=False, recovery_point=recovery_point)
    else:
        log = _load(*arguments, clean_shutdown=False, recovery_point=recovery_point)
    if topic_id is not None:
        log.assign_topic_id(topic_id)
    return log


def _load(
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    files: Files,
    now_ms: int,
    log_start_offset: int,
    gaps_end: int,
    *,
    clean_shutdown: bool,
    recovery_point: int,
) -> Log:
    """The log in a folder that is there. Raises `KafkaError` where a batch is none."""
    names = _remove_leftovers(files, directory)
    epochs = LeaderEpochCache(files, os.path.join(directory, EPOCHS_FILE))
    found, damaged = _load_segments(files, directory, names, config, now_ms)
    damaged |= find_damaged_transaction_indexes(found)
    visible_from = max(log_start_offset, found[0].base_offset) if found else log_start_offset
    replay = ProducerReplay(files, directory, topic_partition, found, visible_from)
    if found and not clean_shutdown:
        found = recover_unflushed(
            files,
            found,
            epochs,
            replay,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            gaps_end=gaps_end,
        )
    for segment in found:
        if segment.base_offset in damaged and not segment.offset_index.is_trusted:
            reindex_segment(segment, replay)
    end_offset = found[-1].next_offset() if found else log_start_offset
    if end_offset < log_start_offset and clean_shutdown:
        logger.warning(
            "%s ends at %d, so it cannot start at %d as the checkpoint says: it starts where "
            "its first segment does",
            topic_partition,
            end_offset,
            log_start_offset,
        )
        log_start_offset = 0
    elif end_offset < log_start_offset:  # the crash took what was left to read
        logger.warning(
            "%s ends at %d, before its start %d: what is left of it was deleted before the "
            "crash and goes now",
            topic_partition,
            end_offset,
            log_start_offset,
        )
        remove_for_good(files, found)
        found, end_offset = [], log_start_offset
        epochs.clear()
    if not found:
        found = [LogSegment(files, directory, end_offset, config, now_ms, is_new=True)]
    segments = LogSegments(found)
    flushed_to = segments[segments.floor_index(recovery_point)].base_offset
    segments.active.load_for_appends()
    log_start_offset = max(log_start_offset, segments.first.base_offset)
    recover_epochs(found, epochs, log_start_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    epochs.flush()
    was_flushed = recovery_point > 0 or (clean_shutdown and end_offset > 0)
    log = Log(
        files,
        directory,
        topic_partition,
        config,
        segments,
        log_start_offset=log_start_offset,
        log_end_offset=end_offset,
        recovery_point=end_offset
        if clean_shutdown
        else min(flushed_to, recovery_point, end_offset),
        epochs=epochs,
        producers=ProducerStateManager(topic_partition),
        topic_id=_read_topic_id(files, directory, was_flushed=was_flushed),
    )
    log.rebuild_producer_state(now_ms, replay.producers_at(end_offset))
    return log


def _read_topic_id(files: Files, directory: str, *, was_flushed: bool) -> bytes | None:
    """The topic id, which a crash may have torn only in a log that was never flushed."""
    try:
        return read_topic_id(files, directory)
    except LogDirectoryError as error:
        if was_flushed:
            raise
        logger.warning("%s; the log holds nothing that was flushed, so it is written again", error)
        # By whoever hears of the topic next; until then a flush may make the log count as flushed.
        files.remove(os.path.join(directory, PARTITION_METADATA))
        return None


def _make_log(
    directory: str,
    topic_partition: TopicPartition,
    config: LogConfig,
    files: Files,
    now_ms: int,
    topic_id: bytes | None,
) -> Log:
    """A log in a new folder: as few files as can be, since a topic may have many."""
    files.make_directory(directory)
    if topic_id is not None:
        write_topic_id(files, directory, topic_id)
    segment = LogSegment(files, directory, 0, config, now_ms, is_new=True)
    epochs = LeaderEpochCache(files, os.path.join(directory, EPOCHS_FILE), is_new=True)
    return Log(
        files,
        directory,
        topic_partition,
        config,
        LogSegments([segment]),
        log_start_offset=0,
        log_end_offset=0,
        recovery_point=0,
        epochs=epochs,
        producers=ProducerStateManager(topic_partition),
        topic_id=topic_id,
    )


def _remove_leftovers(files: Files, directory: str) -> list[str]:
    names = []
    for name in complete_swaps(files, directory):
        if name.endswith(LEFTOVERS):
            files.remove(os.path.join(directory, name))
        else:
            names.append(name)
    return names


def _load_segments(
    files: Files,
    directory: str,
    names: list[str],
    config: LogConfig,
    now_ms: int,
) -> tuple[list[LogSegment], set[int]]:
    """The segments, and the base offsets of those that are to be read through for their indexes."""
    present = set(names)
    segments = []
    damaged: set[int] = set()
    for name in names:
        stem, suffix = os.path.splitext(name)
        if not stem.isdigit():
            continue
        if suffix in INDEX_SUFFIXES and f"{stem}.log" not in present:
            files.remove(os.path.join(directory, name))
        elif suffix == ".log":
            segment = LogSegment(files, directory, int(stem), config, now_ms, is_new=False)
            if f"{stem}.index" not in present or f"{stem}.timeindex" not in present:
                damaged.add(segment.base_offset)
            if f"{stem}.txnindex" in present:
                _ = segment.transaction_index  # from now on it is asked
            segments.append(segment)
    return segments, damaged

"""Opening a log: finding its segments, or making the first (Kafka's LogLoader).

After a clean shutdown the files are taken at their word. Otherwise every segment from
the recovery point on is read through, cut at the first batch that is torn or corrupt,
and what lies behind the cut is removed.
"""

from __future__ import annotations

import os.path

from ..protocol.errors import KafkaError
from .files import REAL_FILES, Files
from .leader_epoch_cache import LeaderEpochCache
from .log import Log
from .log_config import LogConfig
from .log_segment import LogSegment
from .log_segments import LogSegments
from .partition_metadata import read_topic_id, write_topic_id
from .producer_state_manager import ProducerStateManager
from .segment_recovery import recover_segment
from .topic_partition import TopicPartition

EPOCHS_FILE = "leader-epoch-checkpoint"
LEFTOVERS = (".deleted", ".cleaned", ".swap", ".tmp")
"""Suffixes of files that an interrupted deletion, compaction or write leaves behind."""


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

    Raises:
        OSError: the disk fails.
        CheckpointError: the leader epoch checkpoint is damaged.
        KafkaError: INCONSISTENT_TOPIC_ID, the folder is of another topic of that name.
    """
    if not files.exists(directory):
        return _make_log(directory, topic_partition, config, files, now_ms, topic_id)
    arguments = (directory, topic_partition, config, files, now_ms, log_start_offset)
    if clean_shutdown:
        try:
            log = _load(*arguments, clean_shutdown=True, recovery_point=recovery_point)
        except KafkaError:  # the files are not what a clean shutdown leaves
            log = _load(*arguments, clean_shutdown=False, recovery_point=0)
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
    *,
    clean_shutdown: bool,
    recovery_point: int,
) -> Log:
    """The log in a folder that is there. Raises `KafkaError` where a batch is none."""
    names = _remove_leftovers(files, directory)
    epochs = LeaderEpochCache(files, os.path.join(directory, EPOCHS_FILE))
    found = _load_segments(files, directory, names, config, now_ms, epochs)
    if found and not clean_shutdown:
        found = _recover(found, epochs, recovery_point)
    end_offset = found[-1].next_offset() if found else log_start_offset
    if end_offset < log_start_offset:  # files were lost: what is left may not be read
        for segment in found:
            segment.delete()
        found, end_offset = [], log_start_offset
        epochs.clear()
    if not found:
        found = [LogSegment(files, directory, end_offset, config, now_ms, is_new=True)]
    segments = LogSegments(found)
    segments.active.load_for_appends()
    log_start_offset = max(log_start_offset, segments.first.base_offset)
    epochs.truncate_from_end(end_offset)
    epochs.truncate_from_start(log_start_offset)
    epochs.flush()
    log = Log(
        files,
        directory,
        topic_partition,
        config,
        segments,
        log_start_offset=log_start_offset,
        log_end_offset=end_offset,
        recovery_point=end_offset if clean_shutdown else min(recovery_point, end_offset),
        epochs=epochs,
        producers=ProducerStateManager(topic_partition),
        topic_id=read_topic_id(files, directory),
    )
    log.rebuild_producer_state()
    return log


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
    for name in files.list_directory(directory):
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
    epochs: LeaderEpochCache,
) -> list[LogSegment]:
    """The segments by base offset; one without its indexes is read through to make them."""
    present = set(names)
    segments = []
    for name in names:
        stem, suffix = os.path.splitext(name)
        if not stem.isdigit():
            continue
        if suffix in (".index", ".timeindex") and f"{stem}.log" not in present:
            files.remove(os.path.join(directory, name))
        elif suffix == ".log":
            segment = LogSegment(files, directory, int(stem), config, now_ms, is_new=False)
            if f"{stem}.index" not in present or f"{stem}.timeindex" not in present:
                recover_segment(segment, epochs)
            segments.append(segment)
    return segments


def _recover(
    segments: list[LogSegment], epochs: LeaderEpochCache, recovery_point: int
) -> list[LogSegment]:
    """Read through what was not flushed; nothing stays behind a cut."""
    kept: list[LogSegment] = []
    for index, segment in enumerate(segments):
        kept.append(segment)
        is_last = index + 1 == len(segments)
        is_flushed = not is_last and segments[index + 1].base_offset <= recovery_point
        if not is_flushed and recover_segment(segment, epochs):
            for lost in segments[index + 1 :]:
                lost.delete()
            break
    return kept

"""Which partitions lie in the folders, and what is written beside them."""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...common.topic_partition import TopicPartition
from ...log_tools.verify.data_folder import is_partition_folder, list_folders
from ...log_tools.verify.partition_verification import list_segments
from ...storage.checkpoint.checkpoint_file import CheckpointError, read_offsets
from ...storage.file_names import HIGH_WATERMARKS_FILE, LOG_START_OFFSETS_FILE, segment_path
from ...storage.io.read_only_files import READ_ONLY_FILES
from ..errors import SparkConnectorError
from .options import LogOptions


class Segment(NamedTuple):
    """One of a log's files, with its indexes beside it."""

    path: str
    base_offset: int
    next_base_offset: int | None
    """That of the segment behind it; None of the last one."""
    size: int

    @property
    def is_last(self) -> bool:
        """Whether the log ends with it."""
        return self.next_base_offset is None


class PartitionLog(NamedTuple):
    """The files of a partition in one folder."""

    folder: str
    """As the user gave it."""
    path: str
    topic: str
    partition: int
    segments: tuple[Segment, ...]
    log_start_offset: int
    high_watermark: int | None


def partition_logs(options: LogOptions) -> Iterator[PartitionLog]:
    """The logs that the options select, in each folder by topic and number.

    Raises:
        SparkConnectorError: a folder or what lies beside the logs cannot be read.
    """
    for folder in options.folders:
        try:
            yield from _logs_in(folder, options)
        except (OSError, CheckpointError) as error:
            raise SparkConnectorError(f"option 'path': {folder} cannot be read: {error}") from None


def _logs_in(folder: str, options: LogOptions) -> Iterator[PartitionLog]:
    full = os.path.abspath(folder)
    if is_partition_folder(READ_ONLY_FILES, full):
        parent = os.path.dirname(full)
        found = TopicPartition.from_folder_name(os.path.basename(full))
        partitions = [] if found is None else [found]
    else:
        parent = full
        partitions = list_folders(READ_ONLY_FILES, full)
    starts = _checkpoint(parent, LOG_START_OFFSETS_FILE)
    high_watermarks = _checkpoint(parent, HIGH_WATERMARKS_FILE)
    for each in partitions:
        if not options.selection.covers(each.topic, each.partition):
            continue
        path = os.path.join(parent, each.folder_name)
        segments = tuple(_segments(path))
        first = segments[0].base_offset if segments else 0
        yield PartitionLog(
            folder=folder,
            path=path,
            topic=each.topic,
            partition=each.partition,
            segments=segments,
            log_start_offset=max(first, starts.get(each, 0)),
            high_watermark=high_watermarks.get(each),
        )


def _checkpoint(parent: str, name: str) -> Mapping[TopicPartition, int]:
    return read_offsets(READ_ONLY_FILES, os.path.join(parent, name))


def _segments(path: str) -> Iterator[Segment]:
    bases = list_segments(READ_ONLY_FILES, path)
    for base, following in zip(bases, [*bases[1:], None], strict=True):
        file = segment_path(path, base, ".log")
        yield Segment(file, base, following, READ_ONLY_FILES.size(file))

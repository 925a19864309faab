"""Which files of a folder are shown, and in which order."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator

from ...storage.file_names import SNAPSHOT_SUFFIX, TRANSACTION_INDEX_SUFFIX, segment_path
from ...storage.io.files import Files
from ...storage.io.read_only_files import READ_ONLY_FILES
from ...storage.producer_state.producer_snapshot import list_snapshots
from ..verify.folders import list_folders
from ..verify.partition import list_segments
from .log_dump import DumpOptions
from .side_files import SIDE_FILES


def files_of_data_folder(
    path: str, options: DumpOptions, *, side_files: bool, files: Files = READ_ONLY_FILES
) -> Iterator[str]:
    """The files at the root, then those of each partition.

    Raises:
        OSError: the folder cannot be read.
    """
    if side_files:
        yield from _present(files, path, SIDE_FILES)
    for topic_partition in list_folders(files, path):
        folder = os.path.join(path, topic_partition.folder_name)
        yield from files_of_partition(folder, options, side_files=side_files, files=files)


def files_of_partition(
    path: str, options: DumpOptions, *, side_files: bool, files: Files = READ_ONLY_FILES
) -> Iterator[str]:
    """A partition's segments that may hold the offsets that are wanted, each with its indexes.

    Raises:
        OSError: the folder cannot be read.
    """
    if side_files:
        yield from _present(files, path, SIDE_FILES)
    base_offsets = list_segments(files, path)
    suffixes = (
        (".log", ".index", ".timeindex", TRANSACTION_INDEX_SUFFIX) if side_files else (".log",)
    )
    for base_offset, following in zip(base_offsets, [*base_offsets[1:], None], strict=True):
        is_before = following is not None and following <= options.from_offset
        if not is_before and base_offset <= options.to_offset:
            names = [os.path.basename(segment_path("", base_offset, each)) for each in suffixes]
            yield from _present(files, path, names)
    if side_files:
        for offset in list_snapshots(files, path):
            yield os.path.join(path, f"{offset:020d}{SNAPSHOT_SUFFIX}")


def _present(files: Files, path: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        full = os.path.join(path, name)
        if files.exists(full):
            yield full

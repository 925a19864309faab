"""Replacing segments by a cleaned one so that a crash leaves the old or the new.

Kafka's LocalLog.replaceSegments and LogLoader. A segment's files go through these names:

1. `.cleaned` while they are written and synced. A start removes them.
2. `.swap`, the log file first. While any `.cleaned` of it is left, a start removes the
   `.swap` files too; once none is, it completes the swap.
3. The files of the replaced segments get `.deleted`; a start removes what they cover.
4. `.swap` is dropped from the names: the new segment is in place.

A file system keeps the order of names that change in one directory; so does Kafka rely on it.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Sequence
from contextlib import suppress

from ...common.errors import KafkaError
from ..file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    segment_path,
)
from ..index.offset_index import OffsetIndex
from ..io.files import Files
from .segment_reader import iter_headers


def begin_swap(files: Files, directory: str, base_offset: int, suffixes: Sequence[str]) -> None:
    """Rename a cleaned segment's files to `.swap`: from now on a start uses it.

    Args:
        directory: the partition's folder.
        base_offset: the new segment's.
        suffixes: of its files, `.log` first.

    Raises:
        OSError: the disk fails; nothing of the new segment is left to be swapped in.
    """
    done: list[str] = []
    try:
        for suffix in suffixes:
            path = segment_path(directory, base_offset, suffix)
            files.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
            done.append(path)
    except OSError:
        for path in done:
            with suppress(OSError):
                files.remove(path + SWAP_SUFFIX)
        raise


def finish_swap(files: Files, directory: str, base_offset: int, suffixes: Sequence[str]) -> None:
    """Give a swapped segment's files their final names; the replaced ones are out of the way.

    Raises:
        OSError: the disk fails; the next start finishes the work.
    """
    for suffix in suffixes:
        path = segment_path(directory, base_offset, suffix)
        files.rename(path + SWAP_SUFFIX, path)


def remove_cleaned(files: Files, directory: str, base_offset: int) -> None:
    """Remove a cleaned segment that is not used.

    Raises:
        OSError: the disk fails; the next start removes it.
    """
    for suffix in SEGMENT_SUFFIXES:
        files.remove(segment_path(directory, base_offset, suffix) + CLEANED_SUFFIX)


def remove_unfinished(files: Files, directory: str) -> None:
    """Remove what an interrupted cleaning left: a start would take it for part of the next swap."""
    names = files.list_directory(directory)
    for suffix in (SWAP_SUFFIX, CLEANED_SUFFIX):  # in this order: the second revoke the first
        _remove(files, directory, [name for name in names if name.endswith(suffix)])


def complete_swaps(files: Files, directory: str) -> list[str]:
    """Remove or finish what an interrupted deletion or compaction left in a partition's folder.

    Returns:
        The names that are in the folder now.
    """
    names = files.list_directory(directory)
    if not any(name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX, DELETED_SUFFIX)) for name in names):
        return names
    first_cleaned = min(
        (_offset_of(name) for name in names if name.endswith(CLEANED_SUFFIX)), default=None
    )
    swapped = []
    for name in names:
        if name.endswith(SWAP_SUFFIX) and (
            first_cleaned is None or _offset_of(name) < first_cleaned
        ):
            swapped.append(name)
    # `.swap` files first: as long as `.cleaned` ones are there, a start does not use them.
    obsolete = [name for name in names if name.endswith(SWAP_SUFFIX) and name not in swapped]
    obsolete += [name for name in names if name.endswith((CLEANED_SUFFIX, DELETED_SUFFIX))]
    _remove(files, directory, obsolete)
    for name in swapped:
        if name.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            _remove_replaced(files, directory, names, _offset_of(name))
    for name in sorted(swapped, key=_is_log_file, reverse=True):
        path = os.path.join(directory, name)
        files.rename(path, path.removesuffix(SWAP_SUFFIX))
    if swapped:
        files.sync_directory(directory)
    return files.list_directory(directory)


def _remove_replaced(files: Files, directory: str, names: list[str], base_offset: int) -> None:
    """Remove the files of all segments that a swapped one covers, and their snapshots."""
    end_offset = _next_offset(files, directory, base_offset)
    replaced = []
    for name in names:
        stem, suffix = os.path.splitext(name)
        if not stem.isdigit():
            continue
        offset = int(stem)
        is_covered = base_offset < offset < end_offset
        is_same = offset == base_offset and suffix != SNAPSHOT_SUFFIX
        if suffix in (*SEGMENT_SUFFIXES, SNAPSHOT_SUFFIX) and (is_covered or is_same):
            replaced.append(name)
    _remove(files, directory, replaced)


def _next_offset(files: Files, directory: str, base_offset: int) -> int:
    """Where the segment with `.swap` in its names ends."""
    log_path = segment_path(directory, base_offset, LOG_SUFFIX) + SWAP_SUFFIX
    index_path = segment_path(directory, base_offset, INDEX_SUFFIX) + SWAP_SUFFIX
    file = files.open(log_path)
    position = 0
    if files.exists(index_path):
        index = OffsetIndex(files, index_path, base_offset, is_new=False)
        if len(index):
            position = index.entry(len(index) - 1)[1]
    next_offset = base_offset
    with suppress(KafkaError):  # the recovery that follows cuts what is no batch
        for _, batch in iter_headers(file, position, file.size()):
            next_offset = batch.next_offset
    return next_offset


def _remove(files: Files, directory: str, names: Iterable[str]) -> None:
    for name in names:
        files.remove(os.path.join(directory, name))


def _offset_of(name: str) -> int:
    """The base offset in a file's name; of no segment's file, one that sorts before all."""
    stem = name.partition(".")[0]
    return int(stem) if stem.isdigit() else -1


def _is_log_file(name: str) -> bool:
    return name.endswith(LOG_SUFFIX + SWAP_SUFFIX)

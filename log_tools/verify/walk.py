"""Walking through a file of batches that may be damaged, without losing the way.

A reader may stop at the first thing that is no batch. Who looks for damage has to go on:
after a damaged batch there may be thousands that are not, and those must not be cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from ...protocol.records.batch import (
    BATCH_HEADER_BYTES,
    CRC_COVERS_FROM,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    RecordBatch,
)
from ...protocol.records.crc import crc32c
from ...storage.io.files import StorageFile
from ...storage.segment.log_segment import OFFSETS_MAX

CHUNK_BYTES = 1024 * 1024

WHOLE_BATCH_BYTES_MAX = 128 * 1024 * 1024
"""A batch larger than this is checked, but its records are not looked into."""

MAGIC_AT = 16
MAGIC_BYTE = bytes([MAGIC_V2])

SEARCH_FACTOR = 4
"""A search for the next batch reads no more than this many times what it searches."""


_continue_crc = cast(Callable[[memoryview, int], int], crc32c)
"""The checksum of some bytes and those before them, whose checksum it is given."""


class Stretch(NamedTuple):
    """Some bytes of a file: a whole batch, or what is none."""

    position: int
    size: int
    batch: RecordBatch | None
    """None where the bytes are no batch. A damaged one's fields need not be true."""
    problem: str | None
    """What is wrong with the bytes, as the end of a sentence; None of a whole batch."""
    has_records: bool
    """Whether `batch` has its records in memory."""

    @property
    def end(self) -> int:
        """The position of what follows."""
        return self.position + self.size


def walk_batches(
    file: StorageFile, end: int, base_offset: int, position: int = 0
) -> Iterator[Stretch]:
    """All bytes of a file from `position` to `end`, in order.

    A batch whose checksum is wrong is taken as long as it says if another batch, or the end,
    follows there; else the next whole batch is searched for, so that the last stretch is
    without a batch only if nothing sound comes after it.

    Args:
        file: a segment's.
        end: no byte from there on is looked at.
        base_offset: the segment's: no offset below it, or too far above, belongs in the file.
        position: where a batch begins.
    """
    window = _Window(file, end)
    next_offset = base_offset
    limit = base_offset + OFFSETS_MAX
    while position < end:
        stretch = _stretch_at(window, position)
        if stretch.problem is not None and not _is_followed(window, stretch):
            found = _search(window, position + 1, next_offset, limit)
            stretch = stretch._replace(size=found - position)
            if stretch.batch is not None and stretch.batch.size_in_bytes != stretch.size:
                stretch = stretch._replace(batch=None)
        elif stretch.batch is not None and stretch.problem is None:
            next_offset = max(next_offset, stretch.batch.next_offset)
        yield stretch
        position = stretch.end


class _Window:
    """A piece of a file in memory, read again for bytes outside of it."""

    def __init__(self, file: StorageFile, end: int) -> None:
        self.file = file
        self.end = end
        self._start = 0
        self._data = b""

    def at(self, position: int, size: int) -> tuple[bytes, int]:
        """A buffer that holds `size` bytes from `position` on, as far as the file has them,
        and where in it they begin."""
        index = position - self._start
        if index < 0 or index + size > len(self._data):
            chunk_bytes = min(max(size, CHUNK_BYTES), self.end - position)
            self._data = self.file.read_at(chunk_bytes, position)
            self._start = position
            index = 0
        return self._data, index

    def header(self, position: int) -> RecordBatch | None:
        """The header at a position, if one can be there and its batch ends in the file."""
        data, index = self.at(position, BATCH_HEADER_BYTES)
        if len(data) - index < BATCH_HEADER_BYTES:
            return None
        batch = RecordBatch(data, index)
        is_readable = (
            batch.magic == MAGIC_V2
            and batch.batch_length >= BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES
            and batch.last_offset_delta >= 0
            and batch.base_offset >= 0
        )
        return batch if is_readable and batch.size_in_bytes <= self.end - position else None

    def has_valid_crc(self, position: int, batch: RecordBatch) -> bool:
        """Whether a batch's checksum is right, reading a chunk at a time."""
        checksum = 0
        at = position + CRC_COVERS_FROM
        end = position + batch.size_in_bytes
        while at < end:
            data, index = self.at(at, 1)
            part = memoryview(data)[index : index + min(end - at, CHUNK_BYTES)]
            if not part:
                return False
            checksum = _continue_crc(part, checksum)
            at += len(part)
        return checksum == batch.crc


def _stretch_at(window: _Window, position: int) -> Stretch:
    rest = window.end - position
    if rest < BATCH_HEADER_BYTES:
        return Stretch(position, rest, None, f"{rest} bytes are too few for a batch", False)
    batch = window.header(position)
    if batch is None:
        return Stretch(position, rest, None, _why_no_header(window, position), False)
    size = batch.size_in_bytes
    is_small = size <= WHOLE_BATCH_BYTES_MAX
    if size <= CHUNK_BYTES:
        data, index = window.at(position, size)
        batch = RecordBatch(data, index)
    if not window.has_valid_crc(position, batch):
        return Stretch(position, size, batch, "fails its checksum", False)
    if is_small and size > CHUNK_BYTES:
        batch = RecordBatch(window.file.read_at(size, position))
    return Stretch(position, size, batch, None, is_small)


def _why_no_header(window: _Window, position: int) -> str:
    data, index = window.at(position, BATCH_HEADER_BYTES)
    if len(data) - index < BATCH_HEADER_BYTES:
        return "the file is shorter than it was"
    batch = RecordBatch(data, index)
    if not any(data[index : index + BATCH_HEADER_BYTES]):
        return "there are zeros where a batch should be"
    if batch.magic in (0, 1):
        return f"there is a batch of format v{batch.magic}, which only Kafka before 4.0 reads"
    if batch.magic != MAGIC_V2:
        return f"there is no record format {batch.magic}"
    if batch.size_in_bytes > window.end - position:
        return f"a batch of {batch.size_in_bytes} bytes does not end in the file"
    return f"no batch has length {batch.batch_length} and offsets {batch.base_offset} to " + (
        f"{batch.last_offset}"
    )


def _is_followed(window: _Window, stretch: Stretch) -> bool:
    """Whether a damaged batch ends where it says: something whole begins right there.

    At the end of the file its own length is all there is, and good enough.
    """
    if stretch.batch is None:
        return False
    if stretch.end == window.end:
        return True
    following = window.header(stretch.end)
    return following is not None and window.has_valid_crc(stretch.end, following)


def _search(window: _Window, position: int, next_offset: int, limit: int) -> int:
    """Where the next whole batch begins, or the end if none does.

    Only what has the right magic byte, a length that fits and an offset that belongs here is
    read through, and no more than a few times what there is: data can be made to look like
    headers.
    """
    budget = SEARCH_FACTOR * (window.end - position) + CHUNK_BYTES
    while position + BATCH_HEADER_BYTES <= window.end:
        data, index = window.at(position, BATCH_HEADER_BYTES)
        chunk_at = position - index
        magic_at = data.find(MAGIC_BYTE, index + MAGIC_AT)
        if magic_at < 0 or magic_at - MAGIC_AT + BATCH_HEADER_BYTES > len(data):
            # the last bytes of this chunk may hold the beginning of a header
            position = max(position + 1, chunk_at + len(data) - BATCH_HEADER_BYTES + 1)
            continue
        position = chunk_at + magic_at - MAGIC_AT
        batch = window.header(position)
        if batch is not None and next_offset <= batch.base_offset <= limit:
            budget -= batch.size_in_bytes
            if budget < 0:
                return window.end
            if window.has_valid_crc(position, batch):
                return position
        position += 1
    return window.end

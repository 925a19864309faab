"""Walking through a segment's file batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...protocol.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    CRC_COVERS_FROM,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    RecordBatch,
    require_readable_format,
)
from ...protocol.records.crc import crc32c
from ...protocol.records.validation import has_valid_crc
from ..io.files import Buffer, StorageFile

HEADERS_CHUNK_BYTES = 16 * 1024
"""Read at once when only headers matter: an index interval and a few batches more. Of batches so
large that this holds hardly two of them, no more is read than their headers."""

WHOLE_CHUNK_BYTES = 512 * 1024
"""A smaller chunk has threads that recover logs hand each other the interpreter more often, and a
larger one is mapped anew by the allocator, which takes longer than to read it."""

LENGTH_AT = 8
"""Where in a batch its length stands, and behind it leader epoch and magic."""

_unpack_length_and_magic = Struct(">i4xb").unpack_from
_unpack_header = BATCH_HEADER.unpack_from

BatchHeaderFields: TypeAlias = tuple[
    int, int, int, int, int, int, int, int, int, int, int, int, int
]
"""The fields of `BATCH_HEADER`, as they follow each other."""
LENGTH, MAGIC, CRC, LAST_OFFSET_DELTA = 1, 3, 4, 6
"""Which of them they are."""


def iter_headers(file: StorageFile, position: int, end: int) -> Iterator[tuple[int, RecordBatch]]:
    """The headers of the batches from `position` on, with the position of each.

    The batches' buffers hold no records. Stops before one that does not end by `end`.

    Raises:
        KafkaError: CORRUPT_MESSAGE, something that is no batch lies there.
    """
    chunk = b""
    chunk_start = position
    size = 0
    while position + BATCH_HEADER_BYTES <= end:
        at = position - chunk_start
        if at + BATCH_HEADER_BYTES > len(chunk):
            are_large = size >= HEADERS_CHUNK_BYTES // 2
            chunk_bytes = BATCH_HEADER_BYTES if are_large else HEADERS_CHUNK_BYTES
            chunk = file.read_at(min(chunk_bytes, end - position), position)
            if len(chunk) < BATCH_HEADER_BYTES:
                return
            chunk_start = position
            at = 0
        batch = RecordBatch(chunk, at)
        require_readable_format(batch.magic, batch.batch_length)
        size = batch.size_in_bytes
        if position + size > end:
            return
        yield position, batch
        position += size


def batch_size_at(file: StorageFile, position: int, end: int) -> int:
    """The bytes of the batch that begins somewhere; 0 if it does not end by `end`.

    Raises:
        KafkaError: CORRUPT_MESSAGE, something that is no batch lies there.
    """
    if position + BATCH_HEADER_BYTES > end:
        return 0
    header = file.read_at(BATCH_HEADER_BYTES, position)
    if len(header) < BATCH_HEADER_BYTES:
        return 0
    batch_length, magic = _unpack_length_and_magic(header, LENGTH_AT)
    require_readable_format(magic, batch_length)
    size: int = batch_length + LOG_OVERHEAD_BYTES
    return size if position + size <= end else 0


def find_batch(
    file: StorageFile, position: int, end: int, offset: int, base_offset: int
) -> int | None:
    """Where the first batch lies that ends at `offset` or later.

    Neither base offset nor length is covered by a batch's checksum, so the batch is
    compared with its neighbours: offsets have to rise, and where the next batch does not follow
    at once, the checksum has to be right.

    Args:
        file: of batches.
        position: where a batch begins that does not lie after `offset`.
        end: up to where to look.
        offset: what is looked for.
        base_offset: no batch begins before it.

    Returns:
        The position, or None where no batch reaches `offset`.

    Raises:
        KafkaError: CORRUPT_MESSAGE, something on the way, or the batch itself, is not as it
            was written.
    """
    headers = iter_headers(file, position, end)
    next_offset = base_offset
    behind = position
    for at, batch in headers:
        if batch.base_offset < next_offset or batch.last_offset_delta < 0:
            raise _out_of_order(at, batch, next_offset)
        if batch.last_offset >= offset:
            follows_at_once = batch.base_offset == next_offset
            _check_found(file, at, batch, headers, follows_at_once)
            return at
        next_offset = batch.next_offset
        behind = at + batch.size_in_bytes
    if behind != end:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"the batch at {behind} does not end with the file"
        )
    return None


def _check_found(
    file: StorageFile,
    position: int,
    batch: RecordBatch,
    behind: Iterator[tuple[int, RecordBatch]],
    follows_at_once: bool,
) -> None:
    try:
        _, following = next(behind, (0, None))
    except KafkaError:
        following = None
    if following is not None and following.base_offset == batch.next_offset:
        return
    if following is not None and following.base_offset < batch.next_offset and not follows_at_once:
        raise _out_of_order(position, batch, following.base_offset)
    _require_checksum(file, position, batch.size_in_bytes)


def require_valid_batch(file: StorageFile, position: int, end: int) -> None:
    """Make sure that a batch begins somewhere and is as it was written.

    Raises:
        KafkaError: CORRUPT_MESSAGE, it is not.
    """
    for _, batch in iter_headers(file, position, end):
        _require_checksum(file, position, batch.size_in_bytes)
        return
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at {position} is not whole")


def _require_checksum(file: StorageFile, position: int, size: int) -> None:
    if not has_valid_crc(read_batch(file, position, size)):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"the checksum of the batch at {position} is wrong"
        )


def _out_of_order(position: int, batch: RecordBatch, beside: int) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the batch at {position} has offsets {batch.base_offset} to {batch.last_offset}, which "
        f"do not fit beside {beside}",
    )


def read_batch(file: StorageFile, position: int, size: int) -> RecordBatch:
    """One whole batch, records included.

    Raises:
        struct.error: the file ends inside the batch's header.
    """
    return RecordBatch(file.read_at(size, position))


def iter_valid_batches(file: StorageFile, end: int) -> Iterator[tuple[int, RecordBatch]]:
    """Whole batches from the start of a file, and where they lie; see `iter_valid_headers`."""
    position = 0
    for chunk, at, header in iter_valid_headers(file, end):
        yield position, RecordBatch(chunk, at)
        position += header[LENGTH] + LOG_OVERHEAD_BYTES


def iter_valid_headers(
    file: StorageFile, end: int
) -> Iterator[tuple[Buffer, int, BatchHeaderFields]]:
    """The headers of whole batches from the start of a file up to the first torn or corrupt one.

    What a crash may leave at the end of a log is no error here, only the end. All unflushed batches
    of a broker are read by this when it starts after a crash, so it makes nothing for each.

    Yields:
        A buffer, where in it the batch begins, and the fields of `BATCH_HEADER`.
    """
    position, at_least = 0, BATCH_HEADER_BYTES
    while position + BATCH_HEADER_BYTES <= end:
        chunk = file.read_at(min(max(WHOLE_CHUNK_BYTES, at_least), end - position), position)
        chunk_end = len(chunk)
        if chunk_end < at_least:
            return
        view = memoryview(chunk)
        at, at_least = 0, BATCH_HEADER_BYTES
        while at + BATCH_HEADER_BYTES <= chunk_end:
            header: BatchHeaderFields = _unpack_header(chunk, at)
            size = header[LENGTH] + LOG_OVERHEAD_BYTES
            if (
                header[MAGIC] != MAGIC_V2
                or size < BATCH_HEADER_BYTES
                or header[LAST_OFFSET_DELTA] < 0
                or position + size > end
            ):
                return
            if at + size > chunk_end:
                at_least = size
                break
            if crc32c(view[at + CRC_COVERS_FROM : at + size]) != header[CRC]:
                return
            yield chunk, at, header
            at += size
            position += size

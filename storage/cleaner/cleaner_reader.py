"""The batches of a segment, whole and checked: the cleaner copies nothing it has not read."""

from __future__ import annotations

from collections.abc import Iterator

from ...common.errors import ErrorCode, KafkaError
from ...protocol.records.batch import BATCH_HEADER_BYTES, RecordBatch, require_readable_format
from ...protocol.records.validation import require_valid_crc
from ..io.files import StorageFile
from .cleaner_pace import CleanerPace


def iter_checked_batches(
    file: StorageFile, end: int, buffer_bytes: int, pace: CleanerPace, start_offset: int = -1
) -> Iterator[RecordBatch]:
    """Every batch of a file, records included.

    Args:
        file: a segment's.
        end: the file's size; batches fill it.
        buffer_bytes: how much is read at once; a larger batch is read whole all the same.
        pace: told of what is read.
        start_offset: batches that end before it are passed over unchecked.

    Raises:
        OSError: the disk fails.
        KafkaError: CORRUPT_MESSAGE, a batch is torn, fails its checksum, or does not follow the
            one before it.
        CleaningCancelled: there is no use in going on.
    """
    position = chunk_start = 0
    chunk = b""
    last_offset = -1

    def read(at_least: int) -> bytes:
        data = file.read_at(min(max(buffer_bytes, at_least), end - position), position)
        pace.spend(len(data))
        return data

    while position < end:
        if position - chunk_start + BATCH_HEADER_BYTES > len(chunk):
            chunk, chunk_start = read(BATCH_HEADER_BYTES), position
        if position - chunk_start + BATCH_HEADER_BYTES > len(chunk):
            raise _torn(position)
        batch = RecordBatch(chunk, position - chunk_start)
        require_readable_format(batch.magic, batch.batch_length)
        size = batch.size_in_bytes
        if position + size > end:
            raise _torn(position)
        if batch.base_offset <= last_offset or batch.last_offset_delta < 0:
            raise _out_of_order(position, batch.base_offset, last_offset)
        last_offset = batch.last_offset
        if last_offset >= start_offset:
            if position - chunk_start + size > len(chunk):
                chunk, chunk_start = read(size), position
                batch = RecordBatch(chunk)
            require_valid_crc(batch)
            yield batch
            pace.breathe()
        position += size


def _torn(position: int) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE, f"what lies at position {position} is no whole batch"
    )


def _out_of_order(position: int, offset: int, last_offset: int) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"the batch at position {position} begins at offset {offset}, after {last_offset}",
    )

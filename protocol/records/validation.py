"""What a broker checks of a batch without decoding its records."""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.named_tuple import NamedTuple
from ...common.sentinels import NO_TIMESTAMP
from ..compression.codecs import DECOMPRESSED_BYTES_MAX
from ..varints import read_raw_zigzag
from .batch import BATCH_HEADER_BYTES, CRC_COVERS_FROM, LOG_OVERHEAD_BYTES, RecordBatch
from .crc import crc32c
from .walk import Need, iter_runs

DECOMPRESSED_BYTES_AT_LEAST = 16 << 20
DECOMPRESSED_BYTES_PER_BYTE = 64
RECORDS_AT_LEAST = 50_000
NAMED_RECORDS_MAX = 10_000
"""Of more records than these a summary does not keep the positions."""


def has_valid_crc(batch: RecordBatch) -> bool:
    """Whether the batch is whole and its checksum is the stored one."""
    size = batch.size_in_bytes
    view = memoryview(batch.buffer)
    if size < BATCH_HEADER_BYTES or batch.position + size > len(view):
        return False
    start = batch.position + CRC_COVERS_FROM
    checksum: int = crc32c(view[start : batch.position + size])
    return checksum == batch.crc


def require_valid_crc(batch: RecordBatch) -> None:
    """Refuse a batch whose bytes are not those that were sent.

    Raises:
        KafkaError: CORRUPT_MESSAGE.
    """
    if not has_valid_crc(batch):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the record batch at offset {batch.base_offset} fails its checksum",
        )


def decompressed_bytes_max(size: int) -> int:
    """To how many bytes a client's batch may decompress where it has to be opened.

    Kafka knows no such limit. Small batches decompress to much, rightly, if they hold little but
    zeros; without a limit their sender would spend our time a hundred thousand times as fast as
    theirs.
    """
    return min(
        DECOMPRESSED_BYTES_AT_LEAST + DECOMPRESSED_BYTES_PER_BYTE * size, DECOMPRESSED_BYTES_MAX
    )


def records_max(size: int) -> int:
    """How many records a client's batch of so many bytes may hold where each is looked at."""
    return RECORDS_AT_LEAST + size


class RecordsSummary(NamedTuple):
    """What one pass over the records tells that the header does not."""

    keyless: list[int]
    """The positions in the batch of the first records without a key."""
    out_of_range: dict[int, int]
    """The positions of the first whose timestamp is too early or too late, and the timestamps."""
    max_timestamp: int
    """In ms since the epoch; -1 if no record has one."""


def summarize_records(
    batch: RecordBatch,
    earliest_timestamp: int,
    latest_timestamp: int,
    max_bytes: int = DECOMPRESSED_BYTES_MAX,
) -> RecordsSummary:
    """Look at each record's timestamp and key length, decompressing where needed.

    For topics whose settings ask about every record; those of others are never opened.

    Args:
        batch: a whole one.
        earliest_timestamp: in ms; a record without a timestamp (-1) is never too early.
        latest_timestamp: in ms.
        max_bytes: the most the records may decompress to.

    Raises:
        KafkaError: INVALID_RECORD, it does not decompress, or the records do not fill it or
            are not as many as its header says.
    """
    keyless: list[int] = []
    out_of_range: dict[int, int] = {}
    max_timestamp = NO_TIMESTAMP
    base_timestamp = batch.base_timestamp
    index = -1
    try:
        for data, bounds in iter_runs(batch, Need.HEAD, max_bytes):
            for position in bounds[::2]:
                index += 1
                raw = data[position + 1]
                field = position + 2
                if raw >= 0x80:
                    if data[field] < 0x80:
                        raw = raw & 0x7F | data[field] << 7
                        field += 1
                    else:
                        raw, field = read_raw_zigzag(data, position + 1)
                timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1))
                while data[field] >= 0x80:  # The offset's delta is of no interest.
                    field += 1
                if data[field + 1] & 1 and len(keyless) < NAMED_RECORDS_MAX:
                    keyless.append(index)  # Zigzag: a length below zero is odd.
                if timestamp > max_timestamp:
                    max_timestamp = timestamp
                if (
                    timestamp != NO_TIMESTAMP
                    and not (earliest_timestamp <= timestamp <= latest_timestamp)
                    and len(out_of_range) < NAMED_RECORDS_MAX
                ):
                    out_of_range[index] = timestamp
    except KafkaError as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.message) from error
    except IndexError:
        raise _misfit(batch) from None
    return RecordsSummary(keyless, out_of_range, max_timestamp)


def _misfit(batch: RecordBatch) -> KafkaError:
    size = batch.batch_length + LOG_OVERHEAD_BYTES - BATCH_HEADER_BYTES
    return KafkaError(
        ErrorCode.INVALID_RECORD,
        f"{batch.records_count} records do not fill the {size} bytes of their batch",
    )

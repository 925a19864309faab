"""What a batch must be like before a leader takes it (Kafka's LogValidator).

The common batch passes in one comparison after another on its unpacked header; only a
refusal finds out, in Kafka's order of checks, which error it is. Records are skipped
by their lengths. They are decoded only where the topic's settings need it: keys of compacted
topics, a limit on old timestamps, another compression.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import INT64_MAX
from ...common.topic_partition import TopicPartition
from ...protocol.compression.codecs import Compression
from ...protocol.compression.recompression import recompress
from ...protocol.records.batch import (
    BATCH_HEADER,
    BATCH_HEADER_BYTES,
    COMPRESSION_MASK,
    CRC_COVERS_FROM,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_BYTES,
    MAGIC_V2,
    TRANSACTIONAL_FLAG,
    RecordBatch,
)
from ...protocol.records.builder import write_crc
from ...protocol.records.crc import crc32c
from ...protocol.records.layouts import RecordLayouts
from ...protocol.records.validation import decompressed_bytes_max, records_max, summarize_records
from ..errors import RecordValidationError
from .append_origin import AppendOrigin
from .log_config import LogConfig

ATTRIBUTES_AT = 21
MAX_TIMESTAMP_AT = 35
HEADER_MAGIC_BYTES = 17
"""Kafka takes fewer bytes than these for the end of the records, whatever they are."""

LEGACY_RECORD_BYTES_MIN = 14
RECORDS_SHOWN_MAX = 3
LAST_COMPRESSION = max(Compression)
PLAIN_ATTRIBUTES = COMPRESSION_MASK | TRANSACTIONAL_FLAG
FROM_CLIENT = AppendOrigin.CLIENT

RECORD_LAYOUTS = RecordLayouts()
"""Of all logs together: a producer writes to many partitions, mostly in one form."""


ValidBatch = tuple[memoryview, int, int, int, int, int, int, int]
"""A batch that may be appended; its offsets and leader epoch are still to be set. Its bytes, their
number, last offset delta, max timestamp, attributes, producer id, producer epoch, base sequence:
a plain tuple, since one is made for every batch appended."""


class LogValidator:
    """The checks of one log.

    Args:
        topic_partition: named in error messages.
        config: the topic's settings.
    """

    __slots__ = (
        "_alters_batch",
        "_config",
        "_latest_ahead_ms",
        "_max_message_bytes",
        "_opens_records",
        "_target_compression",
        "_topic_partition",
        "_uses_log_append_time",
    )

    def __init__(self, topic_partition: TopicPartition, config: LogConfig) -> None:
        self._topic_partition = topic_partition
        self.configure(config)

    def configure(self, config: LogConfig) -> None:
        """Take over changed settings."""
        self._config = config
        self._max_message_bytes = config.max_message_bytes
        self._latest_ahead_ms = config.message_timestamp_after_max_ms
        self._uses_log_append_time = config.uses_log_append_time
        self._target_compression = (
            None
            if config.compression_type == "producer"
            else Compression.from_name(config.compression_type)
        )
        limits_age = (
            config.message_timestamp_before_max_ms != INT64_MAX and not self._uses_log_append_time
        )
        self._opens_records = config.compacts or limits_age
        self._alters_batch = self._uses_log_append_time or self._target_compression is not None

    def validate(self, records: memoryview, origin: AppendOrigin, now_ms: int) -> ValidBatch:
        """Check what a producer or a coordinator appends: exactly one batch.

        Args:
            records: writable; timestamps and compression are changed in it where the topic
                says so, in a copy where the size changes.
            origin: coordinators may set offsets and write control records, and their records are
                not decoded.
            now_ms: the wall time.

        Raises:
            KafkaError: as Kafka answers it, see `_refuse`.
        """
        size = len(records)
        if size < BATCH_HEADER_BYTES:
            raise self._refuse(records, origin)
        (
            base_offset,
            batch_length,
            _,
            magic,
            crc,
            attributes,
            last_offset_delta,
            _,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            records_count,
        ) = BATCH_HEADER.unpack_from(records)
        if (
            batch_length + LOG_OVERHEAD_BYTES != size
            or magic != MAGIC_V2
            or size > self._max_message_bytes
            or crc32c(records[CRC_COVERS_FROM:]) != crc
        ):
            records = self._require_one_sound_batch(records, origin)
            size = len(records)
        if origin is FROM_CLIENT and (
            base_offset
            or last_offset_delta + 1 != records_count
            or records_count <= 0
            or attributes & ~PLAIN_ATTRIBUTES
            or (producer_id >= 0 and base_sequence < 0)
        ):
            self._check_client_header(records)
        compression = attributes & COMPRESSION_MASK
        if compression:
            if compression > LAST_COMPRESSION:
                raise self._invalid_record(f"unknown compression {compression}")
        elif not RECORD_LAYOUTS.lengths_add_up(records, records_count):
            raise self._invalid_record(
                f"{records_count} records do not add up to the {size} bytes of their batch"
            )
        alters = attributes & LOG_APPEND_TIME_FLAG or (
            self._alters_batch
            and (self._uses_log_append_time or self._target_compression != compression)
        )
        if (
            self._opens_records or max_timestamp - now_ms > self._latest_ahead_ms
        ) and origin is FROM_CLIENT:
            latest = self._check_each_record(records, now_ms)
            alters = alters or latest != max_timestamp
            max_timestamp = latest
        if alters:
            records, attributes, max_timestamp = self._alter(records, max_timestamp, now_ms)
            size = len(records)
        return (
            records,
            size,
            last_offset_delta,
            max_timestamp,
            attributes,
            producer_id,
            producer_epoch,
            base_sequence,
        )

    # --- the slow path: something is unusual -------------------------------------------

    def _require_one_sound_batch(self, records: memoryview, origin: AppendOrigin) -> memoryview:
        """The one batch without the trailing bytes, or the error that Kafka would answer.

        Kafka reads batches until one is not whole, and drops what is left at the end.
        """
        batch = RecordBatch(records)
        size = batch.size_in_bytes
        end = len(records)
        sound = (
            batch.magic == MAGIC_V2
            and BATCH_HEADER_BYTES <= size <= end
            and not self._another_batch_follows(records, size)
            and size <= self._max_message_bytes
            and crc32c(records[CRC_COVERS_FROM:size]) == batch.crc
        )
        if not sound:
            raise self._refuse(records, origin)
        return records[:size]

    def _another_batch_follows(self, records: memoryview, position: int) -> bool:
        """Whether Kafka would go on reading, if only to find no batch."""
        if len(records) - position < HEADER_MAGIC_BYTES:
            return False
        length = int.from_bytes(records[position + 8 : position + 12], "big", signed=True)
        return (
            length < LEGACY_RECORD_BYTES_MIN
            or length + LOG_OVERHEAD_BYTES <= len(records) - position
        )

    def _is_impossible(self, records: memoryview, position: int) -> bool:
        """Whether a batch's length or format is invalid."""
        length = int.from_bytes(records[position + 8 : position + 12], "big", signed=True)
        size = length + LOG_OVERHEAD_BYTES
        is_whole = size <= len(records) - position
        return length < LEGACY_RECORD_BYTES_MIN or (is_whole and records[position + 16] > MAGIC_V2)

    def _refuse(self, records: memoryview, origin: AppendOrigin) -> KafkaError:
        """Which error Kafka answers for bytes that are not one sound batch of format v2."""
        end = len(records)
        if end < HEADER_MAGIC_BYTES:
            return self._no_single_batch("missing record batch")
        if self._is_impossible(records, 0):
            return _impossible(records, 0)
        size = int.from_bytes(records[8:12], "big", signed=True) + LOG_OVERHEAD_BYTES
        magic = records[16]
        if size > end:
            return self._no_single_batch("incomplete record batch")
        if magic != MAGIC_V2:
            return self._no_single_batch(f"format v{magic} is not supported, only v2")
        if self._another_batch_follows(records, size):
            if self._is_impossible(records, size):
                return _impossible(records, size)
            return self._no_single_batch("more than one record batch")
        if size < BATCH_HEADER_BYTES:
            return self._corrupt("the record batch is shorter than its header")
        if origin is AppendOrigin.CLIENT and RecordBatch(records).base_offset:
            return self._invalid_record("the base offset is not 0")
        if size > self._max_message_bytes:
            return KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a batch of {size} bytes for {self._topic_partition}, where "
                f"{self._max_message_bytes} are allowed",
            )
        return self._corrupt("the record batch fails its checksum")

    def _check_client_header(self, records: memoryview) -> None:
        """Kafka's checks of a client's header, in its order."""
        batch = RecordBatch(records)
        if batch.base_offset:
            raise self._invalid_record(f"the base offset is {batch.base_offset}, not 0")
        if batch.last_offset_delta < 0:
            raise self._invalid_record(f"the last offset delta is {batch.last_offset_delta}")
        if batch.records_count != batch.last_offset_delta + 1:
            raise self._invalid_record(
                f"the batch has {batch.records_count} records and a last offset delta of "
                f"{batch.last_offset_delta}"
            )
        if batch.is_control:
            raise self._invalid_record("clients may not write control records")
        if batch.has_producer_id and batch.base_sequence < 0:
            raise self._invalid_record(
                f"producer {batch.producer_id} sent sequence {batch.base_sequence}"
            )
        if batch.uses_log_append_time and self._uses_log_append_time:
            raise self._invalid_timestamp("only a broker may mark a batch with LogAppendTime")

    def _check_each_record(self, records: memoryview, now_ms: int) -> int:
        """The latest timestamp of the records, all of which are valid."""
        batch = RecordBatch(records)
        if batch.is_control:
            return batch.max_timestamp
        earliest = now_ms - self._config.message_timestamp_before_max_ms
        latest = now_ms + self._latest_ahead_ms
        size = batch.size_in_bytes
        if batch.records_count > records_max(size):
            raise self._invalid_record(f"{batch.records_count} records in {size} bytes")
        summary = summarize_records(batch, earliest, latest, decompressed_bytes_max(size))
        refused: dict[int, str] = {}
        if self._config.compacts:
            text = "Compacted topic cannot accept message without key in topic partition "
            refused = dict.fromkeys(summary.keyless, f"{text}{self._topic_partition}")
        untimely = {} if self._uses_log_append_time else summary.out_of_range
        for index in untimely.keys() - refused.keys():
            refused[index] = (
                f"Timestamp {untimely[index]} of message with offset {index} is out of range. The "
                f"timestamp should be within [{earliest}, {latest}]"
            )
        if refused:
            is_untimely = len(refused) > len(summary.keyless) * self._config.compacts
            raise _records_refused(sorted(refused.items()), is_untimely=is_untimely)
        return summary.max_timestamp

    # --- what the topic's settings change in a batch -----------------------------------

    def _alter(
        self, records: memoryview, max_timestamp: int, now_ms: int
    ) -> tuple[memoryview, int, int]:
        """Set time and compression as the topic has them; the checksum follows."""
        batch = RecordBatch(records)
        attributes = batch.attributes & ~LOG_APPEND_TIME_FLAG
        if self._uses_log_append_time:
            attributes |= LOG_APPEND_TIME_FLAG
            max_timestamp = now_ms
        source = batch.compression
        target = self._target_compression
        if target is not None and target is not source and not batch.is_control:
            payload = self._recompress(batch, source, target)
            records = memoryview(bytearray(records[:BATCH_HEADER_BYTES]) + payload)
            records[8:12] = (len(records) - LOG_OVERHEAD_BYTES).to_bytes(4, "big")
            attributes = attributes & ~COMPRESSION_MASK | target
        records[ATTRIBUTES_AT : ATTRIBUTES_AT + 2] = attributes.to_bytes(2, "big")
        records[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = max_timestamp.to_bytes(
            8, "big", signed=True
        )
        write_crc(records)
        return records, attributes, max_timestamp

    def _level(self, target: Compression) -> int | None:
        """The topic's level; -1, gzip's default, leaves it to the codec."""
        config = self._config
        levels = {
            Compression.GZIP: config.compression_gzip_level,
            Compression.LZ4: config.compression_lz4_level,
            Compression.ZSTD: config.compression_zstd_level,
        }
        level = levels.get(target, -1)
        return None if level == -1 else level

    def _recompress(self, batch: RecordBatch, source: Compression, target: Compression) -> bytes:
        try:
            return recompress(
                source,
                target,
                batch.records_section(),
                self._level(target),
                decompressed_bytes_max=decompressed_bytes_max(batch.size_in_bytes),
                bytes_max=self._max_message_bytes - BATCH_HEADER_BYTES,
            )
        except KafkaError as error:
            if error.code is ErrorCode.MESSAGE_TOO_LARGE:
                raise KafkaError(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"the batch for {self._topic_partition} has more than "
                    f"{self._max_message_bytes} bytes in compression {target.name.lower()}",
                ) from error
            raise self._invalid_record("the records do not decompress") from error

    def _no_single_batch(self, what: str) -> KafkaError:
        """An error of the request as a whole, before Kafka's log sees it."""
        return KafkaError(ErrorCode.INVALID_RECORD, f"{self._topic_partition}: {what}")

    def _invalid_record(self, what: str) -> KafkaError:
        text = f"{self._topic_partition}: {what}"
        return RecordValidationError(ErrorCode.INVALID_RECORD, text, [])

    def _invalid_timestamp(self, what: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_TIMESTAMP, f"{self._topic_partition}: {what}")

    def _corrupt(self, what: str) -> KafkaError:
        return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self._topic_partition}: {what}")


def _impossible(records: memoryview, position: int) -> KafkaError:
    """A batch whose length or format is invalid, as Kafka's reader of batches words it."""
    length = int.from_bytes(records[position + 8 : position + 12], "big", signed=True)
    magic = int.from_bytes(records[position + 16 : position + 17], "big", signed=True)
    text = f"Invalid magic found in record: {magic}"
    if length < LEGACY_RECORD_BYTES_MIN:
        text = (
            f"Record size {length} is less than the minimum record overhead "
            f"({LEGACY_RECORD_BYTES_MIN})"
        )
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, text)


def _records_refused(refused: list[tuple[int, str]], *, is_untimely: bool) -> RecordValidationError:
    """A batch of which these records are refused; `is_untimely` if one is for its timestamp."""
    if is_untimely:
        text = "One or more records have been rejected due to invalid timestamp"
        return RecordValidationError(ErrorCode.INVALID_TIMESTAMP, text, refused)
    shown = ", ".join(
        f"RecordError(batchIndex={index}, message='{reason}')"
        for index, reason in refused[:RECORDS_SHOWN_MAX]
    )
    text = (
        f"One or more records have been rejected due to {len(refused)} record errors in total, and "
        f"only showing the first three errors at most: [{shown}]"
    )
    return RecordValidationError(ErrorCode.INVALID_RECORD, text, refused)

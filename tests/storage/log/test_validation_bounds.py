"""Batches that hold far more than their length says: taken where that is right, and bounded."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple

import pytest
from support.work import counting_decompressed

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import RecordBatch, build_batch, iter_records
from odradek.protocol.records.builder import write_crc
from odradek.protocol.records.validation import RECORDS_AT_LEAST, decompressed_bytes_max
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log.log_validator import LogValidator

NOW_MS = 1_700_000_000_000
CLIENT = AppendOrigin.CLIENT
COMPACTED = {"cleanup_policy": frozenset({"compact"})}
PACKED = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


class Valid(NamedTuple):
    """What the validator gives, by name."""

    records: memoryview
    size: int
    last_offset_delta: int


def validate(records: bytearray, **config: object) -> Valid:
    validator = LogValidator(TopicPartition("flights", 0), LogConfig(**config))  # type: ignore[arg-type]  # each is of its field's type
    return Valid(*validator.validate(memoryview(records), CLIENT, NOW_MS)[:3])


def zeros(codec: Compression, value_bytes: int) -> bytearray:
    return build_batch([(b"key", bytes(value_bytes), NOW_MS, [])], compression=codec)


@pytest.mark.parametrize("codec", PACKED)
def test_megabytes_of_zeros_are_taken_on_a_compacted_topic_in_little_memory(
    codec: Compression,
) -> None:
    records = zeros(codec, 10 << 20)
    validate(records, **COMPACTED)
    tracemalloc.start()
    try:
        valid = validate(records, **COMPACTED)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert valid.size == len(records)
    assert peak_bytes < (1 << 20) + 8 * len(records)


@pytest.mark.parametrize("target", ["gzip", "lz4", "zstd"])
def test_megabytes_of_zeros_are_taken_by_a_topic_of_another_codec(target: str) -> None:
    records = zeros(Compression.SNAPPY, 10 << 20)
    valid = validate(records, compression_type=target)
    (record,) = iter_records(RecordBatch(valid.records))
    assert record.value == bytes(10 << 20)


def test_what_would_be_too_large_in_the_topics_codec_is_refused() -> None:
    with pytest.raises(KafkaError) as refused:
        validate(zeros(Compression.ZSTD, 10 << 20), compression_type="uncompressed")
    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.LZ4, Compression.ZSTD])
def test_a_small_batch_that_decompresses_to_hundreds_of_megabytes_is_refused_at_once(
    codec: Compression,
) -> None:
    records = zeros(codec, 120 << 20)
    with counting_decompressed() as decompressed, pytest.raises(KafkaError) as refused:
        validate(records, **COMPACTED)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert sum(decompressed) <= decompressed_bytes_max(len(records))


def test_a_batch_of_more_records_than_can_be_looked_at_is_refused_unopened() -> None:
    batch = build_batch([(b"k", None, NOW_MS, [])] * 1000, compression=Compression.ZSTD)

    def with_count(count: int) -> bytearray:
        batch[57:61] = count.to_bytes(4, "big")
        batch[23:27] = (count - 1).to_bytes(4, "big")
        write_crc(batch)
        return batch

    most = RECORDS_AT_LEAST + len(batch)
    with pytest.raises(KafkaError, match="fewer bytes than its records"):
        validate(with_count(most), **COMPACTED)
    with pytest.raises(KafkaError, match=f"{most + 1} records in {len(batch)} bytes"):
        validate(with_count(most + 1), **COMPACTED)
    assert validate(with_count(1000), **COMPACTED).last_offset_delta == 999

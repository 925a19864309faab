"""The walk over a batch's records, and the one that opens them."""

from __future__ import annotations

import struct

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import BATCH_HEADER_BYTES, RecordBatch, build_batch
from odradek.protocol.records.crc import _load_extension, crc32c
from odradek.protocol.records.validation import summarize_records
from odradek.protocol.records.walk import lengths_add_up

FOREVER = 2**62


def adds_up(built: bytearray, count: int) -> bool:
    return lengths_add_up(memoryview(built), BATCH_HEADER_BYTES, len(built), count)


def test_the_checksum_is_crc32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C's definition


def test_the_checksum_comes_from_the_extension_module_itself() -> None:
    assert _load_extension() is not None


@pytest.mark.parametrize("value_bytes", [0, 50, 57, 58, 59, 8180, 8191, 8192, 2_000_000])
def test_records_of_any_length_are_skipped(value_bytes: int) -> None:
    built = build_batch([(None, bytes(value_bytes), 0, [])] * 3)
    assert adds_up(built, 3)
    assert not adds_up(built, 2)
    assert not adds_up(built, 4)
    assert not lengths_add_up(built, BATCH_HEADER_BYTES, len(built) - 1, 3)


@pytest.mark.parametrize(
    "records",
    [
        b"\x00",  # a record of no bytes
        b"\x0a" + bytes(5),  # one byte less than the shortest
        b"\x0b" + bytes(6),  # a negative length
        b"\xff",  # a length that ends with the buffer
        b"\xff\xff\xff\xff\xff\xff\x01" + bytes(10),  # a length of more than 32 bits
        b"\xfe\xff\xff\xff\x0f",  # 2 GiB
    ],
)
def test_lengths_that_no_record_has_do_not_add_up(records: bytes) -> None:
    assert not lengths_add_up(records, 0, len(records), 1)


def test_the_length_of_the_shortest_record_adds_up() -> None:
    assert lengths_add_up(b"\x0c" + bytes(6), 0, 7, 1)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_a_summary_names_keyless_records_and_times_out_of_range(codec: Compression) -> None:
    records = [
        (b"k", b"v", 100, []),
        (None, b"v", 99, []),
        (b"k", b"v", -1, []),
        (b"", b"v", 300, []),
        (None, b"v", 301, []),
    ]
    summary = summarize_records(RecordBatch(build_batch(records, compression=codec)), 100, 300)
    assert summary.keyless == [1, 4]
    assert summary.out_of_range == {1: 99, 4: 301}
    assert summary.max_timestamp == 301


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.SNAPPY])
@pytest.mark.parametrize("count", [1, 3])
def test_a_summary_refuses_a_wrong_number_of_records(codec: Compression, count: int) -> None:
    built = build_batch([(b"k", b"v", 0, [])] * 2, compression=codec)
    struct.pack_into(">i", built, 57, count)
    with pytest.raises(KafkaError) as refused:
        summarize_records(RecordBatch(built), 0, FOREVER)
    assert refused.value.code is ErrorCode.INVALID_RECORD


def test_a_summary_refuses_what_does_not_decompress() -> None:
    built = build_batch([(b"k", b"v", 0, [])])
    struct.pack_into(">h", built, 21, Compression.ZSTD)
    with pytest.raises(KafkaError) as refused:
        summarize_records(RecordBatch(built), 0, FOREVER)
    assert refused.value.code is ErrorCode.INVALID_RECORD

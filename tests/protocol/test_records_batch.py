"""Batches against the builders and readers of kafka-python and aiokafka."""

from __future__ import annotations

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import RecordBatch, build_batch, iter_batches, iter_records
from odradek.protocol.records.validation import has_valid_crc

NOW_MS = 1_700_000_000_000
RECORDS = [
    (b"key", b"value", NOW_MS, [("trace", b"\x01\x02"), ("empty", b""), ("null", None)]),
    (None, b"no key" * 100, NOW_MS - 5000, []),
    (b"tombstone", None, NOW_MS + 100_000, []),
    (b"", b"", NOW_MS, [("naïve", b"header")]),
]
EVERY_CODEC = pytest.mark.parametrize("codec", list(Compression))


def fields(record) -> tuple:
    headers = [(name, value) for name, value in record.headers]
    return (record.offset, record.timestamp, record.key, record.value, headers)


def expected(first_offset: int) -> list[tuple]:
    return [
        (first_offset + index, timestamp, key, value, headers)
        for index, (key, value, timestamp, headers) in enumerate(RECORDS)
    ]


@EVERY_CODEC
@pytest.mark.parametrize("reader", [KafkaPythonBatch, AiokafkaBatch])
def test_clients_read_the_batches_we_build(codec: Compression, reader) -> None:
    built = build_batch(RECORDS, base_offset=42, compression=codec)
    batch = reader(bytes(built))
    assert batch.validate_crc()
    assert [fields(record) for record in batch] == expected(42)


@EVERY_CODEC
@pytest.mark.parametrize("builder", [KafkaPythonBuilder, AiokafkaBuilder])
def test_we_read_the_batches_clients_build(codec: Compression, builder) -> None:
    writer = builder(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=7,
        producer_epoch=3,
        base_sequence=100,
        batch_size=1 << 20,
    )
    for index, (key, value, timestamp, headers) in enumerate(RECORDS):
        writer.append(index, timestamp=timestamp, key=key, value=value, headers=headers)
    [batch] = iter_batches(bytes(writer.build()))
    assert has_valid_crc(batch)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 100)
    assert (batch.records_count, batch.last_offset, batch.last_sequence) == (4, 3, 103)
    assert batch.is_transactional
    assert not batch.is_control
    assert batch.max_timestamp == NOW_MS + 100_000
    assert [fields(record) for record in iter_records(batch)] == expected(0)


def test_a_plain_batch_is_what_the_format_says_byte_by_byte() -> None:
    built = build_batch(
        [(b"k", b"vv", 5, [])], base_offset=9, partition_leader_epoch=2, producer_id=1,
        producer_epoch=0, base_sequence=4, transactional=True,
    )  # fmt: skip
    assert built[:17].hex(" ") == (
        "00 00 00 00 00 00 00 09 "  # base offset
        "00 00 00 3b "  # length: 49 of the header after it, 10 of the record
        "00 00 00 02 "  # leader epoch
        "02"  # magic
    )
    assert built[21:].hex(" ") == (
        "00 10 "  # attributes: transactional
        "00 00 00 00 "  # last offset delta
        "00 00 00 00 00 00 00 05 "  # base timestamp
        "00 00 00 00 00 00 00 05 "  # max timestamp
        "00 00 00 00 00 00 00 01 "  # producer id
        "00 00 "  # producer epoch
        "00 00 00 04 "  # base sequence
        "00 00 00 01 "  # records
        "12 00 00 00 "  # length 9, attributes, timestamp delta, offset delta
        "02 6b 04 76 76 00"  # key, value, no headers
    )


def test_offset_and_leader_epoch_may_be_patched_without_a_new_checksum() -> None:
    built = build_batch(RECORDS)
    struct.pack_into(">q", built, 0, 1 << 40)
    struct.pack_into(">i", built, 12, 77)
    batch = RecordBatch(built)
    assert has_valid_crc(batch)
    assert (batch.base_offset, batch.partition_leader_epoch) == (1 << 40, 77)
    built[21] ^= 1
    assert not has_valid_crc(RecordBatch(built))


def test_records_get_the_brokers_time_where_the_batch_says_so() -> None:
    built = build_batch(RECORDS)
    struct.pack_into(">h", built, 21, 0x08)
    struct.pack_into(">q", built, 35, 999)
    assert {record.timestamp for record in iter_records(RecordBatch(built))} == {999}


def test_sequence_numbers_wrap_around_after_two_to_the_31() -> None:
    built = build_batch(RECORDS, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert RecordBatch(built).last_sequence == 1


def test_batches_follow_each_other_and_one_cut_at_the_end_is_left_out() -> None:
    first, second = build_batch(RECORDS), build_batch(RECORDS[:2], base_offset=4)
    both = first + second
    assert [batch.base_offset for batch in iter_batches(both)] == [0, 4]
    for end in (len(both) - 1, len(first) + 60, len(first) + 1, len(first)):
        assert [batch.base_offset for batch in iter_batches(both[:end])] == [0]


@pytest.mark.parametrize(
    ("position", "patch", "code"),
    [
        (16, b"\x00", ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (16, b"\x01", ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (16, b"\x03", ErrorCode.CORRUPT_MESSAGE),
        (8, b"\x00\x00\x00\x30", ErrorCode.CORRUPT_MESSAGE),  # one byte short of a header
        (8, b"\xff\xff\xff\xff", ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_what_can_be_no_batch_is_refused(position: int, patch: bytes, code: ErrorCode) -> None:
    built = build_batch(RECORDS)
    built[position : position + len(patch)] = patch
    with pytest.raises(KafkaError) as refused:
        list(iter_batches(built))
    assert refused.value.code is code


@pytest.mark.parametrize("count", [3, 5, 2**31 - 1])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
def test_records_that_are_not_as_many_as_the_header_says_are_corrupt(
    count: int, codec: Compression
) -> None:
    built = build_batch(RECORDS, compression=codec)
    struct.pack_into(">i", built, 57, count)
    with pytest.raises(KafkaError) as refused:
        list(iter_records(RecordBatch(built)))
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@given(
    position=st.integers(min_value=61, max_value=len(build_batch(RECORDS)) - 1),
    byte=st.integers(min_value=0, max_value=255),
)
def test_damaged_records_are_decoded_or_refused_but_nothing_else(position: int, byte: int) -> None:
    built = build_batch(RECORDS)
    built[position] = byte
    code = None
    try:
        list(iter_records(RecordBatch(built)))
    except KafkaError as refused:
        code = refused.code
    assert code in (None, ErrorCode.CORRUPT_MESSAGE)


@given(
    st.lists(
        st.tuples(
            st.none() | st.binary(max_size=200),
            st.none() | st.binary(max_size=9000),
            st.integers(min_value=-1, max_value=2**62),
            st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from(list(Compression)),
)
def test_any_records_come_back_as_they_went_in(records: list[tuple], codec: Compression) -> None:
    [batch] = iter_batches(build_batch(records, compression=codec))
    read = [(each.key, each.value, each.timestamp, each.headers) for each in iter_records(batch)]
    assert read == records


def test_a_batch_without_records_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="at least one"):
        build_batch([])

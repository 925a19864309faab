"""Walks that make no records tell of them what reading them tells."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import pytest
from support.selection import short
from support.work import counting_decompressed

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.compression.codecs import Compression, compress
from odradek.protocol.records import RecordBatch, build_batch, iter_records
from odradek.protocol.records.builder import write_crc
from odradek.protocol.records.records import (
    iter_keys,
    iter_offsets_and_timestamps,
    read_values,
)
from odradek.protocol.records.validation import (
    RECORDS_AT_LEAST,
    decompressed_bytes_max,
    records_max,
    summarize_records,
)
from odradek.protocol.varints import append_zigzag_varint

BASE_TIMESTAMP = 1_700_000_000_000
FOREVER = 1 << 60


def random_batch(codec: Compression, rng: Random, value_bytes: int) -> bytearray:
    """Records with and without keys, values and headers; some larger than what is decompressed."""
    records = [
        (
            rng.choice((None, b"", b"key", rng.randbytes(rng.choice((1, 200, 70_000))))),
            rng.choice((None, b"", bytes(rng.randrange(1 + value_bytes)))),
            BASE_TIMESTAMP + rng.choice((0, -5, 63, 64, -8192, 2**31, 2**40)),
            [("header", None), ("größe", b"v" * rng.randrange(200))][: rng.randrange(3)],
        )
        for _ in range(rng.choice((1, 2, 50, 300)))
    ]
    return build_batch(records, base_offset=rng.randrange(1 << 40), compression=codec)


@pytest.mark.parametrize("codec", Compression)
@pytest.mark.parametrize("value_bytes", [20, 5_000, 300_000])
@pytest.mark.parametrize("seed", range(3))
def test_walks_tell_what_the_records_are(codec: Compression, value_bytes: int, seed: int) -> None:
    batch = RecordBatch(random_batch(codec, Random(seed), value_bytes))
    records = list(iter_records(batch))
    assert list(iter_offsets_and_timestamps(batch)) == [
        (record.offset, record.timestamp) for record in records
    ]
    assert list(iter_keys(batch)) == [
        (record.offset - batch.base_offset, record.timestamp, record.key, record.value is None)
        for record in records
    ]
    for first in (0, records[0].offset, records[len(records) // 2].offset, records[-1].offset + 1):
        assert read_values(batch, first) == [
            record.value for record in records if record.offset >= first
        ]
    summary = summarize_records(batch, BASE_TIMESTAMP, BASE_TIMESTAMP + 63)
    assert summary.max_timestamp == max(record.timestamp for record in records)
    assert summary.keyless == [n for n, record in enumerate(records) if record.key is None]
    assert list(summary.out_of_range) == [
        number
        for number, record in enumerate(records)
        if not 0 <= record.timestamp - BASE_TIMESTAMP <= 63
    ]


def test_all_records_of_a_batch_with_log_append_time_have_it() -> None:
    batch = build_batch([(b"k", b"v", 5, []), (b"k", b"v", 6, [])])
    batch[21:23] = b"\0\x08"
    batch[35:43] = (999).to_bytes(8, "big")
    assert {at for _, at in iter_offsets_and_timestamps(RecordBatch(batch))} == {999}
    assert {at for _, at, _, _ in iter_keys(RecordBatch(batch))} == {999}


def test_keys_of_an_uncompressed_batch_are_views_of_it() -> None:
    raw = build_batch([(b"the key", b"v", 0, [])])
    ((_, _, key, _),) = iter_keys(RecordBatch(raw))
    at = raw.index(b"the key")
    raw[at : at + 3] = b"our"
    assert key == b"our key"


WALKS: dict[str, Callable[[RecordBatch], Iterator[Any]]] = {
    "offsets": iter_offsets_and_timestamps,
    "keys": iter_keys,
    "records": iter_records,
    "values": lambda batch: iter(read_values(batch)),
    "summary": lambda batch: iter(summarize_records(batch, 0, FOREVER)),
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.ZSTD])
@pytest.mark.parametrize("count", [0, 1, 2, 4, 300])
def test_records_must_be_as_many_as_the_header_says(
    codec: Compression, count: int, walk: Callable[[RecordBatch], Iterator[Any]]
) -> None:
    raw = build_batch([(None, b"v", 0, [])] * 3, compression=codec)
    raw[57:61] = count.to_bytes(4, "big")
    with pytest.raises(KafkaError):
        list(walk(RecordBatch(raw)))


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.LZ4])
def test_damaged_records_end_a_walk_with_an_error_or_not_at_all(
    codec: Compression, walk: Callable[[RecordBatch], Iterator[Any]]
) -> None:
    """Never with anything else than a domain error; lz4 keeps small batches as they are."""
    rng = Random(7)
    raw = build_batch([(b"key", b"value", n, [("h", b"v")]) for n in range(20)], compression=codec)
    for _ in range(3000):
        damaged = bytearray(raw)
        for _ in range(rng.randint(1, 3)):
            damaged[rng.randrange(61, len(raw))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        with suppress(KafkaError):
            list(walk(RecordBatch(damaged)))


@cache
def one_large_record(codec: Compression, value_bytes: int) -> bytes:
    """A sound batch of one record whose value is zeros."""
    head = bytearray(1)  # attributes
    for number in (0, 0, 3):
        append_zigzag_varint(head, number)
    head += b"key"
    append_zigzag_varint(head, value_bytes)
    length = bytearray()
    append_zigzag_varint(length, len(head) + value_bytes + 1)
    payload = compress(codec, bytes(length + head) + bytes(value_bytes) + b"\0")
    batch = build_batch([(None, b"", 0, [])], compression=codec)[:61] + payload
    batch[8:12] = struct.pack(">i", len(batch) - 12)
    write_crc(batch)
    return bytes(batch)


BOUNDED = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]


@pytest.mark.parametrize("codec", short(BOUNDED, 1))
@pytest.mark.parametrize("name", ["offsets", "keys"])
def test_a_record_of_a_hundred_megabytes_is_walked_over_in_little_memory(
    codec: Compression, name: str
) -> None:
    raw = one_large_record(codec, 100 << 20)
    tracemalloc.start()
    try:
        (walked,) = WALKS[name](RecordBatch(raw))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert walked == ((0, 0) if name == "offsets" else (0, 0, b"key", False))
    assert peak_bytes < (1 << 20) + 8 * len(raw)


@pytest.mark.parametrize("codec", BOUNDED)
def test_a_clients_batch_decompresses_no_further_than_the_limit(codec: Compression) -> None:
    small = RecordBatch(one_large_record(codec, 1 << 20))
    with counting_decompressed() as decompressed:
        summary = summarize_records(small, 0, FOREVER, decompressed_bytes_max(small.size_in_bytes))
    assert summary.out_of_range == {}
    assert sum(decompressed) > 1 << 20
    large = RecordBatch(one_large_record(codec, 100 << 20))
    limit = decompressed_bytes_max(large.size_in_bytes)
    if large.size_in_bytes < 1 << 20:
        with counting_decompressed() as decompressed, pytest.raises(KafkaError) as refused:
            summarize_records(large, 0, FOREVER, limit)
        assert refused.value.code is ErrorCode.INVALID_RECORD
        assert sum(decompressed) <= limit


def test_the_limits_of_what_is_opened_grow_with_the_batch() -> None:
    assert decompressed_bytes_max(0) == 16 << 20
    assert decompressed_bytes_max(1 << 20) == 80 << 20
    assert decompressed_bytes_max(1 << 30) == 128 << 20
    assert records_max(0) == RECORDS_AT_LEAST
    assert records_max(1 << 20) == RECORDS_AT_LEAST + (1 << 20)

"""Batches while they are filled, sealed, split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.producer.producer_batch import (
    RECORDS_MAX,
    ProducerBatch,
    ProducerIdentity,
    bytes_upper_bound,
)
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import RecordBatch, iter_records
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.validation import has_valid_crc

LARGE = 1 << 24
NOW = 1_700_000_000_000

FIELDS = st.none() | st.binary(max_size=70) | st.just(b"v" * 9000)
RECORDS = st.tuples(
    FIELDS,
    FIELDS,
    st.integers(NOW - 10_000, NOW + 10_000),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2),
)


def batch_of(*records, bytes_max: int = LARGE, **options) -> ProducerBatch:
    batch = ProducerBatch("t", 0, bytes_max, 0, **options)
    for key, value, timestamp, headers in records:
        assert batch.append(timestamp, key, value, headers)
    return batch


def values(batch: ProducerBatch) -> list[bytes | None]:
    return [record.value for record in iter_records(RecordBatch(batch.data))]


@given(st.lists(RECORDS, min_size=1, max_size=30), st.sampled_from(list(Compression)))
def test_records_are_encoded_as_the_general_builder_does(records, compression) -> None:
    batch = batch_of(*records, compression=compression)
    batch.set_sequence(ProducerIdentity(7, 3), 12)
    assert bytes(batch.data) == build_batch(
        records, compression=compression, producer_id=7, producer_epoch=3, base_sequence=12
    )


@given(RECORDS)
def test_no_batch_of_one_record_is_larger_than_its_upper_bound(record) -> None:
    key, value, _, headers = record
    assert batch_of(record).size <= bytes_upper_bound(key, value, headers)


def test_a_batch_is_full_when_the_next_record_does_not_fit() -> None:
    batch = batch_of((None, b"x" * 50, NOW, ()), bytes_max=150)
    assert not batch.append(NOW, None, b"y" * 50, ())
    assert batch.is_full
    assert values(batch) == [b"x" * 50]


def test_the_first_record_fits_whatever_its_size() -> None:
    batch = batch_of((None, b"x" * 3_000_000, NOW, ()), bytes_max=100)
    assert values(batch) == [b"x" * 3_000_000]
    assert not batch.append(NOW, None, b"", ())


def test_a_batch_holds_so_many_records() -> None:
    batch = batch_of(*[(None, b"", NOW, ())] * RECORDS_MAX)
    assert not batch.append(NOW, None, b"", ())
    assert len(values(batch)) == RECORDS_MAX


def test_a_closed_batch_takes_no_more() -> None:
    batch = batch_of((None, b"x", NOW, ()))
    batch.close()
    assert not batch.append(NOW, None, b"y", ())
    assert not batch.append(NOW, None, None, ())
    assert values(batch) == [b"x"]


@pytest.mark.parametrize(("key", "value"), [("k", b"v"), (b"k", "v"), (b"k", 5), (None, [b"v"])])
def test_what_is_no_bytes_is_refused_and_leaves_nothing(key, value) -> None:
    batch = batch_of((None, b"x", NOW, ()))
    with pytest.raises(TypeError, match="bytes or None"):
        batch.append(NOW, key, value, ())
    assert values(batch) == [b"x"]


def test_another_sequence_is_written_into_a_sealed_batch() -> None:
    batch = batch_of((None, b"x", NOW, ()), (None, b"y", NOW, ()), is_transactional=True)
    batch.set_sequence(ProducerIdentity(7, 3), 12)
    assert RecordBatch(batch.data).base_sequence == 12
    batch.set_sequence(ProducerIdentity(7, 4), 0)
    read = RecordBatch(batch.data)
    assert (read.producer_id, read.producer_epoch, read.base_sequence) == (7, 4, 0)
    assert read.is_transactional
    assert has_valid_crc(read)
    assert batch.next_sequence == 2


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_a_split_batch_keeps_its_records_and_its_place_in_the_sequence(compression) -> None:
    records = [(b"k", b"%d" % number * 100, NOW + number, ()) for number in range(10)]
    batch = batch_of(*records, compression=compression)
    batch.set_sequence(ProducerIdentity(7, 3), 100)
    parts = batch.split()
    assert len(parts) >= 2
    assert [value for part in parts for value in values(part)] == [r[1] for r in records]
    sequence = 100
    for part in parts:
        assert RecordBatch(part.data).base_sequence == sequence
        sequence += part.count
    assert sequence == batch.next_sequence


def test_a_record_is_found_in_the_parts_of_its_batch() -> None:
    records = [(None, b"%d" % number * 100, NOW, ()) for number in range(9)]
    batch = batch_of(*records)
    for part in batch.split():
        if part.count > 1:
            part.split()
    found = [batch.part_of(index) for index in range(9)]
    assert [values(part)[place] for part, place in found] == [record[1] for record in records]


def test_two_records_are_split_into_two_batches() -> None:
    batch = batch_of((None, b"x" * 10, NOW, ()), (None, b"y" * 1000, NOW, ()))
    assert [values(part) for part in batch.split()] == [[b"x" * 10], [b"y" * 1000]]


def test_listeners_hear_once_that_a_batch_is_done() -> None:
    batch = batch_of((None, b"x", NOW, ()))
    heard: list[bool] = []
    batch.when_done(lambda: heard.append(batch.is_done))
    assert not heard
    batch.delivered(5, -1)
    assert heard == [True]
    assert (batch.is_done, batch.base_offset, batch.failure) == (True, 5, None)

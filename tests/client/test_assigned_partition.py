"""What a partition hands out of what was fetched, and where its position is meanwhile."""

from __future__ import annotations

import pytest

from odradek.client.consumer.assigned_partition import AssignedPartition
from odradek.client.consumer.fetcher import FetchedPartition
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.records import build_batch


def batch(base_offset: int, *values: bytes, leader_epoch: int = 0) -> bytes:
    records = [(None, value, 1_000, ()) for value in values]
    return bytes(build_batch(records, base_offset=base_offset, partition_leader_epoch=leader_epoch))


def fetched(offset: int, data: bytes) -> FetchedPartition:
    return FetchedPartition("t", 0, offset, ErrorCode.NONE, 99, 99, 0, data, (), -1)


@pytest.fixture
def partition() -> AssignedPartition:
    """At offset 1, with two batches of which the first begins before it."""
    partition = AssignedPartition("t", 0)
    partition.seek(1)
    partition.add(fetched(1, batch(0, b"a", b"b", b"c") + batch(3, b"d", b"e")))
    return partition


def offsets(records) -> list[int]:
    return [record.offset for record in records]


def test_records_are_handed_out_batch_by_batch_and_the_position_moves(partition):
    assert partition.fetch_offset == 5
    assert offsets(partition.take_records(9)) == [1, 2]
    assert partition.position == 3
    assert offsets(partition.take_records(1)) == [3]
    assert partition.position == 4
    assert offsets(partition.take_records(9)) == [4]
    assert partition.take_records(9) == []
    assert (partition.position, partition.buffered_bytes) == (5, 0)


def test_what_is_left_of_a_batch_may_be_taken_undecoded(partition):
    assert offsets(partition.take_records(1)) == [1]
    assert partition.take_batch().values() == [b"c"]
    assert partition.take_batch().values() == [b"d", b"e"]
    assert partition.take_batch() is None


def test_the_caller_is_done_with_what_was_handed_out_when_it_says_so(partition):
    partition.take_records(9)
    assert partition.consumed == 1
    partition.finish()
    assert partition.consumed == 3


def test_seeking_drops_what_was_fetched_and_what_is_on_its_way(partition):
    partition.seek(20)
    assert partition.take_record() is None
    partition.add(fetched(5, batch(5, b"f")))
    assert not partition.has_records
    assert (partition.position, partition.fetch_offset) == (20, 20)


def test_a_batch_that_cannot_be_read_is_fetched_again_and_not_passed_over(partition):
    data = bytearray(batch(5, b"good", b"bad"))
    data[-3] ^= 1
    partition.add(fetched(5, bytes(data)))
    for _ in range(2):
        partition.take_batch()
    with pytest.raises(KafkaError) as raised:
        partition.take_batch()
    assert raised.value.code == ErrorCode.CORRUPT_MESSAGE
    assert (partition.position, partition.fetch_offset) == (5, 5)


@pytest.mark.parametrize("flag", ["is_paused", "is_going"])
def test_paused_and_going_partitions_have_nothing_and_fetch_nothing(partition, flag):
    setattr(partition, flag, True)
    assert not partition.has_records
    assert not partition.is_fetchable


def test_what_was_read_is_validated_once_in_each_epoch_of_a_leader():
    partition = AssignedPartition("t", 0)
    partition.seek(4)
    assert not partition.must_validate(7), "nobody knows what was before it"
    partition.seek(4, leader_epoch=2)
    assert partition.must_validate(7)
    partition.validated_epoch = 7
    assert not partition.must_validate(7)
    assert partition.must_validate(8)
    partition.seek(4, leader_epoch=2)
    assert partition.must_validate(7)


def test_what_was_fetched_last_is_what_is_validated(partition):
    partition.seek(1, leader_epoch=2)
    partition.add(fetched(1, batch(0, b"a", b"b") + batch(2, b"c", leader_epoch=5)))
    assert (partition.fetch_offset, partition.fetch_epoch) == (3, 5)
    partition.fetch_again()
    assert (partition.fetch_offset, partition.fetch_epoch) == (1, 2)

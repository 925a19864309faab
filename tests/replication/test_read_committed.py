"""Fetches and lookups of committed records, through the replica manager."""

from typing import TYPE_CHECKING, Any

import pytest
from support.transactions import marker

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import build_batch, iter_batches
from odradek.replication.partition.partition import FetchIsolation, Partition
from odradek.replication.partition.replica import Replica
from odradek.replication.read.fetch import FetchPartition, FetchPartitionData
from odradek.replication.read.list_offsets import (
    EARLIEST_PENDING_UPLOAD,
    LATEST_TIERED,
    NOTHING,
    find_offset,
)
from odradek.storage.index.transaction_index import AbortedTxn
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.producer_state.verification_guard import NOT_REQUIRED

if TYPE_CHECKING:
    from conftest import Bench

T0 = TopicPartition("t", 0)
NOW_MS = 1_700_000_000_000
COMMITTED = FetchIsolation.TRANSACTION_COMMITTED


class Transactions:
    """Writes to partition 0 as producers and their coordinator do."""

    def __init__(self, bench: "Bench") -> None:
        self.bench = bench
        self.sequences: dict[int, int] = {}

    def append(self, data: bytes | bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> int:
        answers: list[Any] = []
        self.bench.manager.append_records(
            timeout_ms=1000,
            required_acks=1,
            internal_topics_allowed=False,
            origin=origin,
            entries={T0: memoryview(bytearray(data))},
            on_complete=answers.append,
            guards={T0: NOT_REQUIRED},
        )
        self.bench.manager.flush()
        answer = answers[0][T0]
        assert answer.error == ErrorCode.NONE, answer
        return int(answer.base_offset)

    def write(self, producer_id: int, timestamp: int = NOW_MS) -> int:
        sequence = self.sequences.get(producer_id, 0)
        self.sequences[producer_id] = sequence + 1
        return self.append(
            build_batch(
                [(b"k", b"v", timestamp, [])],
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=True,
            )
        )

    def plain(self, timestamp: int = NOW_MS) -> int:
        return self.append(build_batch([(b"k", b"v", timestamp, [])]))

    def end(self, producer_id: int, *, commit: bool) -> int:
        return self.append(marker(producer_id, commit=commit), AppendOrigin.COORDINATOR)


@pytest.fixture
def transactions(bench: "Bench") -> Transactions:
    bench.lead(bench.state())
    return Transactions(bench)


@pytest.fixture
def mixed(transactions: Transactions) -> Transactions:
    """0 plain, 1 and 2 aborted by 3, 4 open, 5 plain, 6 committed by 7."""
    t = transactions
    t.plain()
    t.write(0)
    t.write(0)
    t.end(0, commit=False)
    t.write(1)
    t.plain()
    t.write(2)
    t.end(2, commit=True)
    return t


def fetch(
    bench: "Bench", offset: int, isolation: FetchIsolation = COMMITTED, max_bytes: int = 1 << 20
) -> FetchPartitionData:
    requested = FetchPartition(T0, bytes(16), offset, max_bytes)
    ((_, data),) = bench.fetch(requested, isolation=isolation)[0]
    return data


def offsets_of(data: FetchPartitionData) -> list[int]:
    raw = data.records if isinstance(data.records, bytes) else data.records.read()
    return [batch.base_offset for batch in iter_batches(raw)]


def aborted_in(data: FetchPartitionData) -> list[tuple[int, int]] | None:
    if data.aborted_transactions is None:
        return None
    return [(each.producer_id, each.first_offset) for each in data.aborted_transactions]


# What Apache Kafka 4.3.1 answered for the same partition, which a transactional producer of
# confluent-kafka wrote; only its batches came in two answers, since it had rolled at offset 3.
WHILE_4_IS_OPEN = [
    (0, [0, 1, 2, 3], [(0, 1)]),
    (1, [1, 2, 3], [(0, 1)]),
    (2, [2, 3], [(0, 1)]),
    (3, [3], [(0, 1)]),
    (4, [], []),
    (5, [], []),
    (7, [], []),
    (8, [], []),
]
AFTER_4_WAS_ABORTED = [
    (0, [0, 1, 2, 3, 4, 5, 6, 7, 8], [(0, 1), (1, 4)]),
    (3, [3, 4, 5, 6, 7, 8], [(0, 1), (1, 4)]),
    (4, [4, 5, 6, 7, 8], [(1, 4)]),
    (7, [7, 8], [(1, 4)]),
    (8, [8], [(1, 4)]),
    (9, [], []),
]


@pytest.mark.parametrize(("offset", "batches", "aborted"), WHILE_4_IS_OPEN)
def test_readers_of_committed_records_stop_before_an_open_transaction(
    bench: "Bench", mixed: Transactions, offset: int, batches: list[int], aborted: Any
) -> None:
    data = fetch(bench, offset)
    assert (data.error, data.high_watermark, data.last_stable_offset) == (ErrorCode.NONE, 8, 4)
    assert (offsets_of(data), aborted_in(data)) == (batches, aborted)


@pytest.mark.parametrize(("offset", "batches", "aborted"), AFTER_4_WAS_ABORTED)
def test_readers_of_committed_records_get_what_was_aborted(
    bench: "Bench", mixed: Transactions, offset: int, batches: list[int], aborted: Any
) -> None:
    mixed.end(1, commit=False)
    data = fetch(bench, offset)
    assert (data.error, data.high_watermark, data.last_stable_offset) == (ErrorCode.NONE, 9, 9)
    assert (offsets_of(data), aborted_in(data)) == (batches, aborted)


def test_other_readers_see_all_and_get_no_list(bench: "Bench", mixed: Transactions) -> None:
    data = fetch(bench, 0, FetchIsolation.HIGH_WATERMARK)
    assert offsets_of(data) == list(range(8))
    assert data.last_stable_offset == 4
    assert data.aborted_transactions is None


def test_an_offset_behind_the_log_is_out_of_range(bench: "Bench", mixed: Transactions) -> None:
    data = fetch(bench, 9)
    assert data == FetchPartitionData(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert data.aborted_transactions is None


def test_the_list_covers_what_is_read_and_not_much_more(
    bench: "Bench", transactions: Transactions
) -> None:
    log = bench.manager.get_partition(T0).log  # type: ignore[union-attr] - it is led here
    log.configure(log.config._replace(index_interval_bytes=1))
    for producer_id in range(10):
        transactions.write(producer_id)
        transactions.end(producer_id, commit=False)
    data = fetch(bench, 0, max_bytes=10)  # the first batch alone
    reported = aborted_in(data)
    assert reported is not None
    assert reported[0] == (0, 0)
    assert len(reported) <= 2  # the offset index has an entry close behind it


def test_a_waiting_reader_of_committed_records_is_answered_by_the_marker(
    bench: "Bench", mixed: Transactions
) -> None:
    requested = FetchPartition(T0, bytes(16), 4, 1 << 20)
    answers = bench.fetch(requested, isolation=COMMITTED, max_wait_ms=10_000)
    mixed.plain()
    assert answers == []
    mixed.end(1, commit=False)
    ((_, data),) = answers[0]
    assert offsets_of(data) == [4, 5, 6, 7, 8, 9]
    assert aborted_in(data) == [(1, 4)]


# --- with a follower behind ------------------------------------------------------------------


@pytest.fixture
def follower(bench: "Bench", transactions: Transactions) -> Replica:
    """Another replica in the ISR, which has nothing yet."""
    bench.lead(bench.state(leader_epoch=1, isr=(1, 2), replicas=(1, 2), partition_epoch=1))
    partition = bench.manager.get_partition(T0)
    assert partition is not None
    replica = partition.remote_replicas[2]
    replica.log_end_offset = 0
    return replica


def replicate(bench: "Bench", follower: Replica, offset: int) -> Partition:
    partition = bench.manager.get_partition(T0)
    assert partition is not None
    follower.log_end_offset = offset
    partition.maybe_increment_high_watermark()
    return partition


def test_a_transaction_is_unstable_until_its_marker_is_replicated(
    bench: "Bench", transactions: Transactions, follower: Replica
) -> None:
    transactions.plain()  # 0
    transactions.write(1)  # 1
    transactions.plain()  # 2
    transactions.end(1, commit=True)  # 3
    seen = [replicate(bench, follower, end).last_stable_offset for end in range(5)]
    assert seen == [0, 1, 1, 1, 4]


def test_a_partition_begins_with_the_checkpointed_high_watermark(
    bench: "Bench", transactions: Transactions, follower: Replica
) -> None:
    transactions.write(1)
    transactions.end(1, commit=True)
    log = bench.manager.get_partition(T0).log  # type: ignore[union-attr] - it is led here
    assert Partition(T0, bytes(16), 1, log, high_watermark=1).last_stable_offset == 0
    assert Partition(T0, bytes(16), 1, log, high_watermark=2).last_stable_offset == 2


# --- lookups ---------------------------------------------------------------------------------


def test_lookups_of_committed_records_end_at_the_last_stable_offset(
    bench: "Bench", mixed: Transactions
) -> None:
    partition = bench.manager.get_partition(T0)
    assert partition is not None
    for isolation, end in ((COMMITTED, 4), (FetchIsolation.HIGH_WATERMARK, 8)):
        assert find_offset(partition, LATEST_TIMESTAMP, isolation) == (-1, end, 0)
        assert find_offset(partition, EARLIEST_TIMESTAMP, isolation) == (-1, 0, 0)
    mixed.plain(NOW_MS + 5)
    assert find_offset(partition, NOW_MS + 1, FetchIsolation.HIGH_WATERMARK).offset == 8
    assert find_offset(partition, NOW_MS + 1, COMMITTED) is NOTHING
    assert find_offset(partition, MAX_TIMESTAMP, COMMITTED) is NOTHING
    assert find_offset(partition, MAX_TIMESTAMP, FetchIsolation.HIGH_WATERMARK).offset == 8


def test_a_new_leader_does_not_tell_the_end_before_its_followers_have_its_start(
    bench: "Bench", transactions: Transactions
) -> None:
    for _ in range(3):
        transactions.plain()
    bench.lead(bench.state(leader_epoch=1, isr=(1, 2), replicas=(1, 2), partition_epoch=1))
    partition = bench.manager.get_partition(T0)
    assert partition is not None
    partition.high_watermark = 2  # what a broker that was behind knows when it is elected
    for requested in (LATEST_TIMESTAMP, NOW_MS + 1):
        with pytest.raises(KafkaError) as refused:
            find_offset(partition, requested, FetchIsolation.HIGH_WATERMARK)
        assert refused.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert find_offset(partition, EARLIEST_TIMESTAMP, FetchIsolation.HIGH_WATERMARK).offset == 0
    assert find_offset(partition, NOW_MS, FetchIsolation.HIGH_WATERMARK).offset == 0
    for requested in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        assert find_offset(partition, requested, FetchIsolation.HIGH_WATERMARK) is NOTHING
    assert (
        find_offset(partition, LATEST_TIMESTAMP, FetchIsolation.LOG_END).offset == 3
    )  # a replica asks
    partition.remote_replicas[2].log_end_offset = 3
    partition.maybe_increment_high_watermark()
    assert find_offset(partition, LATEST_TIMESTAMP, FetchIsolation.HIGH_WATERMARK).offset == 3


# --- deleting records ------------------------------------------------------------------------


def test_deleted_records_keep_their_transactions_list(bench: "Bench", mixed: Transactions) -> None:
    mixed.end(1, commit=False)
    assert bench.delete_records(2, T0) == (ErrorCode.NONE, 2)
    assert fetch(bench, 1).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert aborted_in(fetch(bench, 2)) == [(0, 1), (1, 4)]
    assert bench.delete_records(-1, T0) == (ErrorCode.NONE, 9)
    data = fetch(bench, 9)
    assert (offsets_of(data), aborted_in(data), data.last_stable_offset) == ([], [], 9)


def test_records_are_deleted_up_to_the_high_watermark_be_a_transaction_open(
    bench: "Bench", mixed: Transactions
) -> None:
    assert bench.delete_records(-1, T0) == (ErrorCode.NONE, 8)
    assert fetch(bench, 8).last_stable_offset == 8
    mixed.end(1, commit=False)
    data = fetch(bench, 8)
    assert (offsets_of(data), aborted_in(data)) == ([8], [(1, 4)])
    log = bench.manager.get_partition(T0).log  # type: ignore[union-attr] - it is led here
    assert log.aborted_transactions(8, 9) == [AbortedTxn(1, 4, 8, 9)]

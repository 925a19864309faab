from typing import TYPE_CHECKING

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.protocol.records import iter_batches, iter_records
from odradek.replication.partition.partition import FetchIsolation
from odradek.replication.read.fetch import FetchPartition, FetchPartitionData

if TYPE_CHECKING:
    from conftest import Bench

T0 = TopicPartition("t", 0)


def ask(name: str, offset: int, *, partition: int = 0, **changes: int) -> FetchPartition:
    requested = FetchPartition(TopicPartition(name, partition), bytes(16), offset, 1 << 20)
    return requested._replace(**changes)


def values_of(data: FetchPartitionData) -> list[bytes | None]:
    raw = data.records if isinstance(data.records, bytes) else data.records.read()
    return [record.value for batch in iter_batches(raw) for record in iter_records(batch)]


def test_what_was_appended_is_read_back_from_its_offset(bench: "Bench") -> None:
    bench.lead(bench.state())
    for value in (b"a", b"b", b"c"):
        bench.produce("t", value)
    ((_, data),) = bench.fetch(ask("t", 1))[0]
    assert values_of(data) == [b"b", b"c"]
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (3, 3, 0)


def test_a_fetch_that_may_not_wait_answers_at_once_with_nothing(bench: "Bench") -> None:
    bench.lead(bench.state())
    ((_, data),) = bench.fetch(ask("t", 0), max_wait_ms=0, min_bytes=1)[0]
    assert (data.error, len(data.records)) == (ErrorCode.NONE, 0)


def test_a_fetch_of_nothing_answers_at_once(bench: "Bench") -> None:
    assert bench.fetch(max_wait_ms=10_000) == [[]]


def test_an_error_in_any_partition_answers_at_once(bench: "Bench") -> None:
    bench.lead(bench.state())
    answers = bench.fetch(ask("t", 0), ask("nowhere", 0), max_wait_ms=10_000)
    assert [data.error for _, data in answers[0]] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


def test_a_waiting_fetch_is_answered_by_the_append_it_waits_for(bench: "Bench") -> None:
    bench.lead(bench.state(), bench.state(partition=1))
    answers = bench.fetch(ask("t", 0), ask("t", 0, partition=1), max_wait_ms=10_000)
    assert answers == []
    bench.produce("t", b"here", partition=1)
    assert [values_of(data) for _, data in answers[0]] == [[], [b"here"]]
    bench.advance(20_000)
    assert len(answers) == 1


def test_a_waiting_fetch_waits_until_min_bytes_are_there(bench: "Bench") -> None:
    bench.lead(bench.state(), bench.state(partition=1))
    size = len(bench_batch(b"x" * 100))
    answers = bench.fetch(
        ask("t", 0), ask("t", 0, partition=1), max_wait_ms=10_000, min_bytes=2 * size + 1
    )
    bench.produce("t", b"x" * 100)
    assert answers == []
    bench.produce("t", b"x" * 100, partition=1)
    assert answers == []
    bench.produce("t", b"x" * 100)
    assert sum(len(data.records) for _, data in answers[0]) == 3 * size


def test_a_waiting_fetch_is_answered_with_what_is_there_when_its_time_is_up(
    bench: "Bench",
) -> None:
    bench.lead(bench.state())
    answers = bench.fetch(ask("t", 0), max_wait_ms=500, min_bytes=1000)
    bench.produce("t", b"little")
    bench.advance(499)
    assert answers == []
    bench.advance(1)
    assert values_of(answers[0][0][1]) == [b"little"]


def test_a_waiting_fetch_learns_that_the_leader_is_gone(bench: "Bench") -> None:
    bench.lead(bench.state())
    answers = bench.fetch(ask("t", 0), max_wait_ms=10_000)
    bench.manager.stop_replicas(1, [StoppedReplica(T0, delete=True)])
    bench.manager.flush()
    assert answers[0][0][1].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_consumers_see_up_to_the_high_watermark_and_replicas_all(bench: "Bench") -> None:
    bench.lead(bench.state(isr=(1, 2), replicas=(1, 2)))
    bench.produce("t", b"not replicated")
    ((_, seen),) = bench.fetch(ask("t", 0))[0]
    ((_, all_of_it),) = bench.fetch(ask("t", 0), isolation=FetchIsolation.LOG_END)[0]
    assert values_of(seen) == []
    assert values_of(all_of_it) == [b"not replicated"]


def bench_batch(value: bytes) -> bytearray:
    from odradek.protocol.records import build_batch

    return build_batch([(None, value, 1_700_000_000_000, ())])


def test_the_first_batch_comes_whole_however_small_the_limits(bench: "Bench") -> None:
    bench.lead(bench.state(), bench.state(partition=1))
    bench.produce("t", b"x" * 1000)
    bench.produce("t", b"y" * 1000)
    bench.produce("t", b"z" * 1000, partition=1)
    ((_, first), (_, second)) = bench.fetch(
        ask("t", 0, max_bytes=10), ask("t", 0, partition=1), max_bytes=10
    )[0]
    assert values_of(first) == [b"x" * 1000]
    assert values_of(second) == []


def test_max_bytes_bounds_a_partition_and_the_whole_answer(bench: "Bench") -> None:
    bench.lead(*[bench.state(partition=index) for index in range(3)])
    for index in range(3):
        for _ in range(4):
            bench.produce("t", b"x" * 100, partition=index)
    size = len(bench_batch(b"x" * 100))
    results = bench.fetch(
        *[ask("t", 0, partition=index, max_bytes=2 * size) for index in range(3)],
        max_bytes=3 * size,
    )[0]
    assert [len(data.records) for _, data in results] == [2 * size, size, 0]


@pytest.mark.parametrize("offset", [-1, 4, 10**12])
def test_offsets_outside_the_log_are_out_of_range(bench: "Bench", offset: int) -> None:
    bench.lead(bench.state())
    for _ in range(3):
        bench.produce("t", b"x")
    ((_, data),) = bench.fetch(ask("t", offset), max_wait_ms=10_000)[0]
    assert data.error is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, ErrorCode.NONE),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, ErrorCode.NONE),
    ],
)
def test_a_fetch_is_fenced_by_the_leader_epoch(
    bench: "Bench", epoch: int, error: ErrorCode
) -> None:
    bench.lead(bench.state(leader_epoch=5))
    ((_, data),) = bench.fetch(ask("t", 0, current_leader_epoch=epoch))[0]
    assert data.error is error


def test_deleted_records_are_out_of_range_and_the_start_moves(bench: "Bench") -> None:
    bench.lead(bench.state())
    for _ in range(5):
        bench.produce("t", b"x")
    assert bench.delete_records(3, T0) == (ErrorCode.NONE, 3)
    assert bench.fetch(ask("t", 2))[0][0][1].error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert len(values_of(bench.fetch(ask("t", 3))[0][0][1])) == 2
    assert bench.delete_records(6, T0) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert bench.delete_records(-1, T0) == (ErrorCode.NONE, 5)

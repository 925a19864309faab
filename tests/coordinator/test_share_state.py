"""States of share partitions: combined batches, records, fencing, and what a restart finds."""

from __future__ import annotations

import itertools
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory_log import PARTITIONS, MemoryLog

from odradek.common.errors import ErrorCode
from odradek.coordinator.log import CoordinatorRecord
from odradek.coordinator.runtime import CoordinatorRuntime
from odradek.coordinator.share.coordinator import ShareCoordinator
from odradek.coordinator.share.operations import (
    DeleteState,
    InitializeState,
    Operation,
    ReadState,
    ReadStateSummary,
    SharePartitionKey,
    StateAnswer,
    StateBatch,
    WriteState,
)
from odradek.coordinator.share.records import (
    ReplayedState,
    replay,
    snapshot_record,
    tombstones,
    update_record,
)
from odradek.coordinator.share.settings import ShareCoordinatorSettings
from odradek.coordinator.share.share_state import ShareState, combine
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.runtime.timers import Timers

KEY = SharePartitionKey("group", bytes(range(16)), 3)


def batches() -> st.SearchStrategy[StateBatch]:
    """Some records in one of a few states."""
    stands = st.sampled_from([(0, 1), (0, 2), (2, 1), (4, 3)])
    return st.builds(
        lambda first, size, stand: StateBatch(first, first + size - 1, *stand),
        st.integers(0, 30),
        st.integers(1, 8),
        stands,
    )


def by_offset(found: list[StateBatch] | tuple[StateBatch, ...]) -> dict[int, tuple[int, int]]:
    return {
        offset: (state, count)
        for first, last, state, count in found
        for offset in range(first, last + 1)
    }


@given(st.lists(batches(), max_size=12), st.integers(0, 20))
def test_of_each_record_counts_its_latest_delivery(updates: list[StateBatch], start: int) -> None:
    said: dict[int, list[tuple[int, int]]] = {}
    for update in updates:
        for offset, each in by_offset([update]).items():
            said.setdefault(offset, []).append(each)
    expected = {
        offset: max(of_one, key=lambda each: (each[1], each[0]))
        for offset, of_one in said.items()
        if offset >= start
    }

    found = run_at_once(combine((), updates, start))

    assert by_offset(found) == expected
    assert list(found) == sorted(found)
    for one, other in pairwise(found):
        assert one.last_offset < other.first_offset
        assert one.last_offset + 1 < other.first_offset or one[2:] != other[2:]


@given(st.lists(st.tuples(st.integers(-1, 20), batches()), max_size=8), st.randoms())
def test_in_which_order_updates_come_does_not_matter(
    writes: list[tuple[int, StateBatch]], rng: random.Random
) -> None:
    def stored() -> ShareState:
        state = ShareState(7, 2, 5, 4)
        for start, batch in writes:
            state = run_at_once(state.updated(5, start, 0, [batch]))
        return state

    found = stored()
    rng.shuffle(writes)
    again = stored()

    assert (again.start_offset, again.batches) == (found.start_offset, found.batches)


@given(st.lists(st.lists(batches(), max_size=4), max_size=5))
def test_a_snapshot_and_its_updates_are_read_back(writes: list[list[StateBatch]]) -> None:
    state = ShareState(7, 2, 5, 4, 0, create_ms=10, write_ms=20)
    records: list[CoordinatorRecord] = [run_at_once(snapshot_record(KEY, state))]
    for number, each in enumerate(writes):
        write = WriteState(KEY, 2, 5 + number, 4 + number, number, each)
        update = update_record(KEY, state.snapshot_epoch, write.leader_epoch, write)
        records.append(run_at_once(update))
        after = state.updated(write.leader_epoch, write.start_offset, number, each)
        state = run_at_once(after)

    states: dict[SharePartitionKey, ReplayedState] = {}
    for offset, record in enumerate(records):
        replay(states, record.key, record.value, offset)

    assert states[KEY].state == state
    assert states[KEY].updates == len(writes)
    (gone,) = tombstones(KEY)
    replay(states, gone.key, gone.value, len(records))
    assert states == {}


# -- the coordinator ----------------------------------------------------------------------------


class Bench:
    """A share coordinator on a log in memory; every call flushes what it appended.

    Attributes:
        pruned: partition and offset of what was removed.
    """

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.clock = ManualClock(1_700_000_000_000)
        self.settings = ShareCoordinatorSettings(updates_per_snapshot=3)
        self.pruned: list[tuple[int, int]] = []
        self.restart()

    def restart(self) -> None:
        """A new broker on the same log."""
        self.timers = Timers()
        self.coordinator = ShareCoordinator(
            CoordinatorRuntime(self.clock, self.timers, self.log),
            self.settings,
            lambda: PARTITIONS,
            lambda topic_id: 4 if topic_id == KEY.topic_id else None,
            lambda partition, offset: self.pruned.append((partition, offset)),
        )
        for partition in range(PARTITIONS):
            self.coordinator.note_leadership(partition, 0, is_leader=True)
        self.fire()

    def fire(self) -> None:
        """Do what is due."""
        self.timers.run_due(self.clock.monotonic_ms())
        self.log.flush()

    def do(self, operation: Operation) -> StateAnswer:
        answers: list[StateAnswer] = []
        self.coordinator.submit(operation, answers.append)
        self.log.flush()
        (answer,) = answers
        return answer

    def write(self, *batches: StateBatch, **changes: int) -> StateAnswer:
        numbers = {"state_epoch": 1, "leader_epoch": 5, "start_offset": 0}
        numbers |= {"delivery_complete_count": 0, **changes}
        return self.do(WriteState(KEY, batches=batches, **numbers))


@pytest.fixture
def bench() -> Bench:
    """One with a share partition that a leader of epoch 5 has read."""
    bench = Bench()
    assert bench.do(InitializeState(KEY, 1)).error is ErrorCode.NONE
    assert bench.do(ReadState(KEY, 5)) == StateAnswer(state_epoch=1)
    return bench


def test_what_was_written_is_read_by_another_coordinator(bench: Bench) -> None:
    for offset in range(10):
        bench.write(StateBatch(offset, offset, 2 if offset % 2 else 0, 1))

    bench.restart()

    answer = bench.do(ReadState(KEY, 6))
    assert answer.error is ErrorCode.NONE
    assert by_offset(tuple(answer.batches)) == {
        offset: (2 if offset % 2 else 0, 1) for offset in range(10)
    }


def test_former_leaders_and_states_are_fenced(bench: Bench) -> None:
    assert bench.do(ReadState(KEY, 6)).error is ErrorCode.NONE
    bench.restart()

    assert bench.write().error is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.do(ReadState(KEY, 5)).error is ErrorCode.FENCED_LEADER_EPOCH
    assert bench.do(InitializeState(KEY, 2, 40)).error is ErrorCode.NONE
    assert bench.write(leader_epoch=6).error is ErrorCode.FENCED_STATE_EPOCH
    assert bench.do(InitializeState(KEY, 1)).error is ErrorCode.FENCED_STATE_EPOCH
    answer = bench.do(ReadState(KEY, 6))
    assert (answer.start_offset, answer.state_epoch, answer.batches) == (40, 2, ())


def test_after_an_offset_that_was_set_nothing_is_done_with(bench: Bench) -> None:
    assert bench.do(ReadStateSummary(KEY)).delivery_complete_count == -1
    bench.do(InitializeState(KEY, 2, 40))
    assert bench.do(ReadStateSummary(KEY)).delivery_complete_count == 0


def test_what_was_not_begun_is_refused_and_unknown_partitions_too(bench: Bench) -> None:
    other = KEY._replace(group_id="other")
    beyond = KEY._replace(partition=4)

    assert bench.do(ReadState(other, 1)).error is ErrorCode.INVALID_REQUEST
    assert bench.do(ReadStateSummary(other)) == StateAnswer()
    assert bench.do(InitializeState(beyond, 1)).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert bench.do(DeleteState(other)).error is ErrorCode.NONE


def test_a_write_that_failed_is_not_remembered(bench: Bench) -> None:
    bench.write(StateBatch(0, 4, 2, 1))
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.write(StateBatch(5, 9, 2, 1)).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.log.fail_with = ErrorCode.NONE
    bench.fire()

    assert bench.do(ReadState(KEY, 5)).batches == (StateBatch(0, 4, 2, 1),)


@pytest.mark.parametrize("question", [ReadState(KEY, 5), ReadStateSummary(KEY)])
@pytest.mark.parametrize("outcome", [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS])
def test_what_may_still_be_lost_is_answered_only_when_it_is_stored(
    bench: Bench, question: Operation, outcome: ErrorCode
) -> None:
    bench.log.is_held = True
    heard: list[tuple[str, StateAnswer]] = []

    def ask(name: str, operation: Operation) -> None:
        bench.coordinator.submit(operation, lambda answer: heard.append((name, answer)))

    ask("first write", WriteState(KEY, 1, 5, 3, 0, ()))
    ask("second write", WriteState(KEY, 1, 5, 7, 0, ()))
    ask("question", question)
    (first, _, base_offset), (second, _, _) = bench.log.take_waiting()
    first(ErrorCode.NONE, base_offset)
    assert [name for name, _ in heard] == ["first write"]
    second(outcome, base_offset + 1)

    assert [name for name, _ in heard] == ["first write", "second write", "question"]
    answer = heard[-1][1]
    if outcome:
        assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    else:
        assert (answer.error, answer.start_offset) == (ErrorCode.NONE, 7)
    bench.fire()
    assert bench.do(question).error is ErrorCode.NONE


def test_a_write_that_was_overtaken_takes_nothing_back(bench: Bench) -> None:
    bench.write(StateBatch(0, 4, 2, 1), start_offset=5, delivery_complete_count=3)
    bench.write(StateBatch(6, 9, 2, 2), start_offset=5, delivery_complete_count=3)
    bench.write(StateBatch(2, 9, 0, 1), start_offset=2, delivery_complete_count=0)

    answer = bench.do(ReadState(KEY, 5))
    assert (answer.start_offset, answer.delivery_complete_count) == (5, 3)
    assert answer.batches == (StateBatch(5, 5, 0, 1), StateBatch(6, 9, 2, 2))


def test_what_others_write_between_the_steps_of_a_write_is_kept(bench: Bench) -> None:
    answers: list[StateAnswer] = []
    batches = [StateBatch(offset, offset, 2, 1) for offset in range(0, 20, 2)]
    long = bench.coordinator.submit_in_steps(WriteState(KEY, 1, 5, 0, 0, batches), answers.append)
    for offset in range(1, 9, 2):  # one of them is written as a snapshot
        next(long)
        bench.write(StateBatch(offset, offset, 0, 3))
    assert answers == []

    run_at_once(long)
    bench.log.flush()

    (answer,) = answers
    assert answer.error is ErrorCode.NONE
    expected = by_offset(batches) | dict.fromkeys(range(1, 9, 2), (0, 3))
    for _ in range(2):
        assert by_offset(tuple(bench.do(ReadState(KEY, 5)).batches)) == expected
        bench.restart()


def test_a_write_whose_share_partition_goes_between_its_steps_is_refused(bench: Bench) -> None:
    answers: list[StateAnswer] = []
    batches = [StateBatch(offset, offset, 2, 1) for offset in range(0, 20, 2)]
    long = bench.coordinator.submit_in_steps(WriteState(KEY, 1, 5, 0, 0, batches), answers.append)
    next(long)
    assert bench.do(InitializeState(KEY, 2)).error is ErrorCode.NONE
    run_at_once(long)
    assert [answer.error for answer in answers] == [ErrorCode.FENCED_STATE_EPOCH]


def test_a_write_that_ends_between_its_steps_leaves_nothing(bench: Bench) -> None:
    before = bench.do(ReadState(KEY, 5))
    batches = [StateBatch(offset, offset, 2, 1) for offset in range(0, 20, 2)]
    long = bench.coordinator.submit_in_steps(WriteState(KEY, 1, 6, 0, 0, batches), print)
    for _ in range(len(batches)):
        next(long)
    long.close()
    assert bench.do(ReadState(KEY, 5)) == before


def test_what_snapshots_have_replaced_is_removed(bench: Bench) -> None:
    for offset in range(9):
        bench.write(StateBatch(offset, offset, 2, 1))

    bench.coordinator.prune()

    ((partition, offset),) = bench.pruned
    kept = [batch for batch in bench.log.batches[partition] if batch.next_offset > offset]
    bench.log.batches[partition] = kept
    bench.restart()
    answer = bench.do(ReadState(KEY, 5))
    assert by_offset(tuple(answer.batches)) == dict.fromkeys(range(9), (2, 1))
    assert len(kept) <= 3


def test_a_share_partition_that_rests_does_not_keep_what_others_have_replaced(
    bench: Bench,
) -> None:
    number = bench.coordinator.partition_for(KEY.text)
    quiet = next(
        key
        for key in (KEY._replace(group_id=f"quiet-{each}") for each in itertools.count())
        if bench.coordinator.partition_for(key.text) == number
    )
    assert bench.do(InitializeState(quiet, 1)).error is ErrorCode.NONE
    for _ in range(4):
        for offset in range(9):
            bench.write(StateBatch(offset, offset, 2, 1))
        bench.clock.advance(bench.settings.cold_interval_ms)
        bench.coordinator.prune()
        bench.log.flush()

    (*_, (_, offset)) = bench.pruned
    kept = [each for each in bench.log.batches[number] if each.next_offset > offset]
    assert len(kept) <= 9 + 3
    bench.log.batches[number] = kept
    bench.restart()
    assert bench.do(ReadState(quiet, 5)).error is ErrorCode.NONE


def test_while_all_share_partitions_rest_nothing_is_written(bench: Bench) -> None:
    for _ in range(3):
        bench.clock.advance(bench.settings.cold_interval_ms)
        bench.coordinator.prune()
        bench.log.flush()

    number = bench.coordinator.partition_for(KEY.text)
    assert len(bench.log.batches[number]) == 2 + 1  # begun and read; and one snapshot


def test_a_deleted_share_partition_is_forgotten(bench: Bench) -> None:
    assert bench.do(DeleteState(KEY)).error is ErrorCode.NONE
    bench.restart()

    assert bench.do(ReadState(KEY, 5)).error is ErrorCode.INVALID_REQUEST

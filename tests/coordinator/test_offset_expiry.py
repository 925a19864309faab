"""A round through all groups is taken in steps, and requests are served in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from support.memory_log import PARTITIONS
from support.work_per_turn import CALL_SECONDS, Work

from odradek.coordinator.group.offset_metadata_manager import OFFSETS_PER_PIECE
from odradek.runtime import long_work

GROUPS = 101
OFFSETS = 3 * OFFSETS_PER_PIECE + 1
INTERVAL_MS = 60_000
CALLS_PER_STEP_MAX = 20_000
"""Of a piece of tombstones, with its end: some milliseconds."""

pytestmark = pytest.mark.usefixtures("shortest_steps")


@pytest.fixture
def shortest_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)


def run_step(bench) -> None:
    """What is due is done once, as a pass of the loop does it."""
    bench.timers.run_due(bench.clock.monotonic_ms())
    bench.log.flush()


def run_round(bench, look: Callable[[], object] = lambda: None) -> int:
    """The steps of a round that has not begun; returns how many there were."""
    steps = 0
    while bench.timers.next_deadline_ms() <= bench.clock.monotonic_ms():
        run_step(bench)
        look()
        steps += 1
    return steps


def with_expired(
    make_bench, groups: int = GROUPS, offsets: int = 1, retention_ms: int = INTERVAL_MS // 2
):
    """Groups whose offsets are all past their retention when the round is due."""
    bench = make_bench(
        offsets_retention_ms=retention_ms, offsets_retention_check_interval_ms=INTERVAL_MS
    )
    for number in range(groups):
        commits = [("orders", partition, 1) for partition in range(offsets)]
        bench.commit(*commits, group_id=f"group-{number}")
    bench.clock.advance(INTERVAL_MS)
    return bench


def test_a_step_ends_some_groups_and_not_all(make_bench) -> None:
    bench = with_expired(make_bench)
    left = [GROUPS]
    steps = run_round(bench, lambda: left.append(len(bench.coordinator.groups)))
    assert steps > 3
    assert left[-1] == 0
    assert max(before - after for before, after in pairwise(left)) < GROUPS / 3


def test_the_offsets_of_one_group_go_in_pieces_and_the_group_with_the_last(make_bench) -> None:
    bench = with_expired(make_bench, 1, OFFSETS)
    left = [OFFSETS]

    def look() -> None:
        group = bench.coordinator.groups
        left.append(len(group[0].offsets) if group else 0)

    run_round(bench, look)
    assert bench.coordinator.groups == []
    lost = {before - after for before, after in pairwise(left)}
    assert lost <= {0, 1, OFFSETS_PER_PIECE}


def test_what_is_committed_between_two_pieces_is_kept_with_its_group(make_bench) -> None:
    bench = with_expired(make_bench, 1, OFFSETS)
    while len(bench.group("group-0").offsets) == OFFSETS:
        run_step(bench)
    bench.commit(("orders", OFFSETS - 1, 7), group_id="group-0")
    run_round(bench)
    assert bench.offsets(group_id="group-0") == {("orders", OFFSETS - 1): 7}
    bench.restart()
    assert bench.offsets(group_id="group-0") == {("orders", OFFSETS - 1): 7}


@pytest.mark.parametrize("retention_ms", [INTERVAL_MS // 2, 2 * INTERVAL_MS])
@pytest.mark.parametrize(("groups", "offsets"), [(1, 3_000), (2_000, 1)])
def test_no_step_is_longer_because_there_is_more_to_do(
    make_bench, groups: int, offsets: int, retention_ms: int
) -> None:
    """The partitions are unloaded, loaded again, and gone through for what has expired."""
    bench = with_expired(make_bench, groups, offsets, retention_ms)
    work, counts = Work(), []
    led = [
        partial(bench.coordinator.note_leadership, partition, epoch, is_leader=epoch == 2)
        for partition in range(PARTITIONS)
        for epoch in (1, 2)
    ]
    with work.counted():
        while led or bench.timers.next_deadline_ms() <= bench.clock.monotonic_ms():
            before = work.seconds()
            if led:
                led.pop(0)()
            else:
                run_step(bench)
            counts.append(round((work.seconds() - before) / CALL_SECONDS))
    assert sum(counts) > 2 * CALLS_PER_STEP_MAX
    assert max(counts) <= CALLS_PER_STEP_MAX


def test_the_next_round_comes_an_interval_later(make_bench) -> None:
    bench = with_expired(make_bench)
    run_round(bench)
    assert bench.timers.next_deadline_ms() == bench.clock.monotonic_ms() + INTERVAL_MS


def test_a_group_that_was_read_back_between_two_steps_keeps_what_it_commits(make_bench) -> None:
    bench = with_expired(make_bench)
    last = f"group-{GROUPS - 1}"
    partition = bench.group(last).partition
    run_step(bench)
    bench.coordinator.note_leadership(partition, 1, is_leader=False)
    bench.coordinator.note_leadership(partition, 2, is_leader=True)
    while bench.coordinator.is_loading:
        run_step(bench)
    bench.commit(("orders", 0, 7), group_id=last)
    run_round(bench)
    bench.restart()
    while bench.coordinator.is_loading:
        run_step(bench)
    assert bench.offsets(group_id=last) == {("orders", 0): 7}


def test_a_coordinator_that_closes_ends_the_round(make_bench) -> None:
    bench = with_expired(make_bench)
    run_step(bench)
    before = len(bench.log.batches)
    bench.coordinator.close()
    while bench.timers.next_deadline_ms() is not None:
        run_step(bench)
    assert len(bench.log.batches) == before

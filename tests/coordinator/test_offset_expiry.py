"""A round through all groups is taken in steps, and requests are served in between."""

from odradek.coordinator.group.offset_metadata_manager import GROUPS_PER_STEP

GROUPS = 2 * GROUPS_PER_STEP + 1
INTERVAL_MS = 60_000
STEPS = 3


def run_step(bench) -> None:
    """What is due is done once, as a pass of the loop does it."""
    bench.timers.run_due(bench.clock.monotonic_ms())
    bench.log.flush()


def with_expired(make_bench):
    """Groups whose offsets are all past their retention when the round is due."""
    bench = make_bench(
        offsets_retention_ms=INTERVAL_MS // 2, offsets_retention_check_interval_ms=INTERVAL_MS
    )
    for number in range(GROUPS):
        bench.commit(("orders", 0, 1), group_id=f"group-{number}")
    bench.clock.advance(INTERVAL_MS)
    return bench


def known(bench) -> int:
    return len(bench.coordinator.groups)


def test_a_step_ends_so_many_groups_and_no_more(make_bench) -> None:
    bench = with_expired(make_bench)
    left = []
    for _ in range(STEPS):
        run_step(bench)
        left.append(known(bench))
    assert left == [GROUPS - GROUPS_PER_STEP, GROUPS - 2 * GROUPS_PER_STEP, 0]


def test_the_next_round_comes_an_interval_later(make_bench) -> None:
    bench = with_expired(make_bench)
    for _ in range(STEPS):
        run_step(bench)
    assert bench.timers.next_deadline_ms() == bench.clock.monotonic_ms() + INTERVAL_MS


def test_a_group_that_was_read_back_between_two_steps_keeps_what_it_commits(make_bench) -> None:
    bench = with_expired(make_bench)
    last = f"group-{GROUPS - 1}"
    partition = bench.group(last).partition
    run_step(bench)
    bench.coordinator.note_leadership(partition, 1, is_leader=False)
    bench.coordinator.note_leadership(partition, 2, is_leader=True)
    run_step(bench)
    bench.commit(("orders", 0, 7), group_id=last)
    run_step(bench)
    bench.restart()
    assert bench.offsets(group_id=last) == {("orders", 0): 7}


def test_a_coordinator_that_closes_ends_the_round(make_bench) -> None:
    bench = with_expired(make_bench)
    run_step(bench)
    bench.coordinator.close()
    assert bench.timers.next_deadline_ms() is None

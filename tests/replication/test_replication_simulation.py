"""Three brokers that replicate under a seeded scheduler, and proof that it finds bugs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

import pytest
from support.selection import short
from support.simulation import Break, first_seed_that_fails, require_same_trace

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import LeaderAndIsr, PartitionState
from odradek.replication.fetcher import fetcher
from odradek.replication.partition.partition import Partition
from odradek.replication.partition.replica import Replica
from odradek.replication.read import reading
from odradek.tools.simulation.replication.controller import ReplicationController
from odradek.tools.simulation.replication.faults import ReplicationFaults
from odradek.tools.simulation.replication.invariants import InvariantBroken
from odradek.tools.simulation.replication.simulator import ReplicationSimulation, run_seed

SEEDS = 1_000
SEEDS_AT_A_TIME = 50
SEEDS_FOR_A_MUTATION = 400


@pytest.fixture(autouse=True)
def _silent_logs() -> Iterator[None]:
    """Brokers in trouble say so, a thousand times. Errors are looked at."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", short(range(0, SEEDS, SEEDS_AT_A_TIME), 1))
def test_whatever_happens_nothing_acknowledged_is_lost(first: int) -> None:
    for seed in range(first, first + SEEDS_AT_A_TIME):
        run_seed(seed)


def test_an_older_fetch_that_a_frozen_leader_reads_late_holds_nothing_up() -> None:
    run_seed(1_000_113, steps=1_500)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_in_a_million_steps_nothing_acknowledged_is_lost() -> None:
    done, seed = 0, 1_000_000
    while done < 1_000_000:
        done += run_seed(seed, steps=5_000)
        seed += 1


def test_a_run_acknowledges_and_changes_leaders() -> None:
    """A simulation in which little happens proves little."""
    acknowledged, elections, crashes, drifts = 0, 0, 0, 0
    for seed in range(20):
        trace: list[str] = []
        simulation = ReplicationSimulation(seed, trace.append)
        simulation.run(300)
        acknowledged += simulation.invariants.acknowledged
        elections += sum(state.leader_epoch for state in simulation.store.states.values())
        crashes += sum("loses power" in line or "is killed" in line for line in trace)
        drifts += sum("clocks run" in line for line in trace)
    assert acknowledged > 20 * 20
    assert elections > 20 * 3
    assert crashes > 20
    assert drifts > 5


def test_a_seed_replays_the_same_in_every_process() -> None:
    require_same_trace("odradek.tools.simulation.replication.simulator", 7)


def test_a_failure_says_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledge_at_once(monkeypatch)
    seed = first_seed_that_fails(run_seed, InvariantBroken, SEEDS_FOR_A_MUTATION)
    with pytest.raises(InvariantBroken) as failure:
        run_seed(seed)
    assert f"python -m odradek.tools.simulation.replication.simulator {seed}" in str(failure.value)


# -- what breaks it on purpose ------------------------------------------------------------

MUTATIONS: list[Break] = []


def mutation(break_it: Break) -> Break:
    MUTATIONS.append(break_it)
    return break_it


@mutation
def never_truncate(patch: pytest.MonkeyPatch) -> None:
    """A follower is not told where the logs part, and goes on behind what it has."""
    patch.setattr(reading, "_diverging_epoch", lambda partition, requested: None)


@mutation
def leave_what_diverges(patch: pytest.MonkeyPatch) -> None:
    """It is told where the logs part, and cuts nothing."""
    patch.setattr(Partition, "truncate_to", lambda partition, offset: None)


@mutation
def truncate_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """As before KIP-101: what is committed may lie above it."""

    def make_follower(partition: Partition, state: PartitionState) -> bool:
        is_new_epoch = real(partition, state)
        if is_new_epoch:
            partition.truncate_to(partition.high_watermark)
        return is_new_epoch

    real = Partition.make_follower
    patch.setattr(Partition, "make_follower", make_follower)


@mutation
def acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    """acks=all does not wait for the ISR."""
    patch.setattr(
        Partition, "has_replicated", lambda partition, required_offset: (True, ErrorCode.NONE)
    )


@mutation
def count_on_a_pending_shrink(patch: pytest.MonkeyPatch) -> None:
    """The high watermark does not wait for those that are about to leave the ISR."""
    real = Partition._propose

    def propose(partition: Partition, isr: Iterable[int]) -> LeaderAndIsr:
        change = real(partition, isr)
        partition.maximal_isr = change.isr
        return change

    patch.setattr(Partition, "_propose", propose)


@mutation
def expand_below_the_epochs_start(patch: pytest.MonkeyPatch) -> None:
    """Whoever has reached a new leader's high watermark may join, though that lags."""

    def maybe_expand_isr(partition: Partition, replica: Replica) -> LeaderAndIsr | None:
        if (
            partition.pending_isr_change is not None
            or replica.log_end_offset < partition.high_watermark
            or not partition.host.may_join_isr(replica.broker_id)
        ):
            return None
        return partition._propose((*partition.isr, replica.broker_id))

    patch.setattr(Partition, "maybe_expand_isr", maybe_expand_isr)


@mutation
def expand_below_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Whoever fetches joins."""

    def maybe_expand_isr(partition: Partition, replica: Replica) -> LeaderAndIsr | None:
        if partition.pending_isr_change is not None:
            return None
        return partition._propose((*partition.isr, replica.broker_id))

    patch.setattr(Partition, "maybe_expand_isr", maybe_expand_isr)


@mutation
def use_every_answer(patch: pytest.MonkeyPatch) -> None:
    """A fetch's answer counts whatever became of the partition since it was asked."""
    patch.setattr(fetcher, "_is_stale", lambda state, requested, now_ms: False)


@mutation
def use_answers_of_former_epochs(patch: pytest.MonkeyPatch) -> None:
    """It counts in the next leader epoch, too, if the fetch offset is the same."""
    patch.setattr(
        fetcher,
        "_is_stale",
        lambda state, requested, now_ms: state.fetch_offset != requested.fetch_offset,
    )


@mutation
def let_the_high_watermark_go_back(patch: pytest.MonkeyPatch) -> None:
    """It is what the replicas have now."""

    def maybe_increment(partition: Partition) -> bool:
        if not partition.is_leader:
            return False
        low = max(partition.least_needed_end(), partition.log_start_offset)
        if low == partition.high_watermark:
            return False
        partition._move_high_watermark(low)
        return True

    patch.setattr(Partition, "maybe_increment_high_watermark", maybe_increment)


@mutation
def believe_in_a_refused_change(patch: pytest.MonkeyPatch) -> None:
    """A refused change of the ISR counts as one that was never tried, or as done."""
    patch.setattr(
        Partition,
        "isr_change_failed",
        lambda partition, change, outcome: partition._commit(change.isr),
    )


@mutation
def forget_a_change_that_may_be_written(patch: pytest.MonkeyPatch) -> None:
    """The high watermark goes by the ISR as it was, and not by the one it may become."""

    def propose(partition: Partition, isr: Iterable[int]) -> LeaderAndIsr:
        change = real(partition, isr)
        partition.maximal_isr = partition.isr
        return change

    real = Partition._propose
    patch.setattr(Partition, "_propose", propose)


@mutation
def run_ahead_of_the_log(patch: pytest.MonkeyPatch) -> None:
    """A follower takes over a high watermark that lies behind the end of its log."""

    def update(partition: Partition, leader_high_watermark: int) -> int:
        partition._move_high_watermark(max(leader_high_watermark, partition.high_watermark))
        return partition.high_watermark

    patch.setattr(Partition, "update_follower_high_watermark", update)


@mutation
def take_an_older_epochs_state(patch: pytest.MonkeyPatch) -> None:
    """An answer to a change of the ISR counts in the next leader epoch."""

    def settle(partition: Partition, change: LeaderAndIsr, partition_epoch: int) -> bool:
        partition._commit(change.isr)
        partition.partition_epoch = partition_epoch
        return True

    patch.setattr(Partition, "settle_isr_change", settle)


@mutation
def keep_the_bounced_in_the_isr(patch: pytest.MonkeyPatch) -> None:
    """A controller that does not see that a broker was away for a moment."""

    def look(controller: ReplicationController) -> None:
        registered = controller._store.registrations
        for each in sorted(controller.alive.keys() & registered.keys()):
            if controller.alive[each] != registered[each]:
                controller._take_up({each: registered[each]})
        real(controller)

    real = ReplicationController.look
    patch.setattr(ReplicationController, "look", look)


@mutation
def let_all_lose_power(patch: pytest.MonkeyPatch) -> None:
    """More than Kafka promises to survive, so that the promise is seen to be tight."""
    patch.setattr(ReplicationFaults, "may_lose_power", lambda faults, broker: True)


@pytest.mark.parametrize("break_it", short(MUTATIONS, 2), ids=lambda break_it: break_it.__name__)
def test_the_simulator_finds(break_it: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    first_seed_that_fails(run_seed, InvariantBroken, SEEDS_FOR_A_MUTATION)

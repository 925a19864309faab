"""A share group on three brokers under a seeded scheduler, and proof that it finds bugs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pytest
from support.simulation import Break, first_seed_that_fails, require_same_trace

from odradek.broker.share.persister import StatePersister
from odradek.broker.share.share_partition import SharePartition
from odradek.broker.share.share_partition_manager import LedSharePartition, SharePartitionManager
from odradek.broker.share.share_sessions import ShareSessionCache
from odradek.common.partition_state import PartitionState
from odradek.coordinator.share import share_state
from odradek.coordinator.share.operations import StateAnswer, StateBatch
from odradek.replication.partition.partition import Partition
from odradek.runtime.steps import Steps
from odradek.tools.simulation.checkers.invariants import InvariantBroken
from odradek.tools.simulation.share.simulator import run_seed

SEEDS = 20
SEEDS_SLOW = 300
SEEDS_SOAK = 10_000
SEEDS_FOR_A_MUTATION = 2_500


@pytest.fixture(autouse=True)
def _silent_logs() -> Iterator[None]:
    """Brokers in trouble say so, a thousand times. Errors are looked at."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_what_was_acknowledged_is_done_with_and_nothing_is_lost() -> None:
    for seed in range(SEEDS):
        run_seed(seed)


@pytest.mark.slow
def test_the_same_with_more_seeds() -> None:
    for seed in range(SEEDS, SEEDS_SLOW):
        run_seed(seed)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_the_same_with_many_seeds_and_in_long_runs() -> None:
    for seed in range(SEEDS_SLOW, SEEDS_SOAK):
        run_seed(seed, steps=600 if seed % 10 else 5_000)


def test_a_run_delivers_again_and_moves_leaders() -> None:
    """A simulation in which little happens proves little."""
    runs = [run_seed(seed) for seed in range(SEEDS)]
    assert sum(sum(run.invariants.deliveries) for run in runs) > 50 * SEEDS
    assert sum(run.invariants.redelivered for run in runs) > 10 * SEEDS
    assert sum(run.invariants.accepted for run in runs) > 10 * SEEDS
    assert sum(run.leader_moves for run in runs) > 2 * SEEDS
    assert sum(run.coordinator_moves for run in runs) > 2 * SEEDS
    assert sum(run.kills for run in runs) > SEEDS / 2


def test_a_seed_replays_the_same_in_every_process() -> None:
    require_same_trace("odradek.tools.simulation.share.simulator", "7")


def the_last_write_counts(patch: pytest.MonkeyPatch) -> None:
    combine = share_state.combine

    def combine_last(
        before: Sequence[StateBatch], updates: Sequence[StateBatch], start_offset: int
    ) -> Steps[Sequence[StateBatch]]:
        said = {
            offset: each[2:]
            for each in (*before, *updates)
            for offset in range(each.first_offset, each.last_offset + 1)
        }
        singles = [StateBatch(offset, offset, *stand) for offset, stand in said.items()]
        return combine((), singles, start_offset)

    patch.setattr(share_state, "combine", combine_last)


def failed_writes_are_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        StatePersister,
        "_answered",
        lambda self, submitted, answer: submitted.respond(
            answer._replace(error=StateAnswer().error)
        ),
    )


def anybody_may_acknowledge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "_check_owner", lambda self, member_id, first, last: None)


def what_is_being_stored_is_given_up(patch: pytest.MonkeyPatch) -> None:
    def give_up(manager: SharePartitionManager, led: LedSharePartition) -> None:
        if not manager.sessions.has_group(led.key.group_id):
            manager._give_up(led)

    patch.setattr(SharePartitionManager, "_give_up_unless_used", give_up)


def ended_sessions_are_served(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ShareSessionCache, "find", lambda self, key: None)


def each_epoch_begins_anew(patch: pytest.MonkeyPatch) -> None:
    make_leader = Partition.make_leader

    def make_new_leader(partition: Partition, state: PartitionState) -> None:
        make_leader(partition, state)
        partition.led_since_epoch = partition.leader_epoch

    patch.setattr(Partition, "make_leader", make_new_leader)


@pytest.mark.slow
@pytest.mark.parametrize(
    "breaks",
    [
        the_last_write_counts,
        failed_writes_are_stored,
        anybody_may_acknowledge,
        what_is_being_stored_is_given_up,
        ended_sessions_are_served,
        each_epoch_begins_anew,
    ],
)
def test_bugs_are_found(monkeypatch: pytest.MonkeyPatch, breaks: Break) -> None:
    breaks(monkeypatch)
    first_seed_that_fails(run_seed, InvariantBroken, SEEDS_FOR_A_MUTATION)


def test_a_failure_says_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    anybody_may_acknowledge(monkeypatch)
    seed = first_seed_that_fails(run_seed, InvariantBroken, SEEDS_FOR_A_MUTATION)
    with pytest.raises(InvariantBroken) as failure:
        run_seed(seed)
    assert f"odradek.tools.simulation.share.simulator {seed} 600" in str(failure.value)

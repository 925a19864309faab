"""The controllers of a cluster under a seeded scheduler, and proof that it finds bugs."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence

import pytest
from support.selection import short
from support.simulation import Break, first_seed_that_fails, require_same_trace

from odradek.common.partition_state import LeaderAndIsr
from odradek.controller.active_controller import ActiveController
from odradek.controller.broker_changes import BrokerChanges
from odradek.controller.channel.request_batch import ControllerBrokerRequestBatch
from odradek.controller.context import ControllerContext
from odradek.controller.fenced_store import FencedStore
from odradek.controller.partitions import replica_state_machine
from odradek.controller.partitions.leadership import Electorate
from odradek.controller.partitions.leadership_writer import Decision, LeadershipWriter, PartitionOf
from odradek.controller.partitions.partition_state_machine import PartitionStateMachine
from odradek.controller.partitions.reassignment import Reassignments
from odradek.controller.partitions.states import ReplicaStatus
from odradek.controller.topics.topic_deletion import TopicDeletion
from odradek.metadata_store.errors import StoreUnreachable
from odradek.metadata_store.store import Operation, Result
from odradek.tools.simulation.controller.invariants import InvariantBroken
from odradek.tools.simulation.controller.simulator import run_seed

SEEDS = 1_000
SEEDS_AT_A_TIME = 50


@pytest.fixture(autouse=True)
def _silent_logs() -> Iterator[None]:
    """A controller in trouble says so, a thousand times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("first", short(range(0, SEEDS, SEEDS_AT_A_TIME), 1))
def test_whatever_happens_the_invariants_hold(first: int) -> None:
    for seed in range(first, first + SEEDS_AT_A_TIME):
        run_seed(seed)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_a_million_steps_hold_the_invariants() -> None:
    done, seed = 0, 1_000_000
    while done < 1_000_000:
        done += run_seed(seed, steps=10_000)
        seed += 1


def test_a_seed_replays_the_same_in_every_process() -> None:
    require_same_trace("odradek.tools.simulation.controller.simulator", 7)


def test_a_failure_says_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_the_leader(monkeypatch)
    seed = first_seed_that_fails(run_seed, InvariantBroken, 400)
    with pytest.raises(InvariantBroken) as failure:
        run_seed(seed)
    assert f"python -m odradek.tools.simulation.controller.simulator {seed}" in str(failure.value)


# -- what breaks it on purpose ------------------------------------------------------------

MUTATIONS: list[Break] = []


def mutation(break_it: Break) -> Break:
    MUTATIONS.append(break_it)
    return break_it


@mutation
def forget_the_fence(patch: pytest.MonkeyPatch) -> None:
    """A controller that was replaced writes all the same."""

    async def multi(fenced: FencedStore, operations: Collection[Operation]) -> list[Result]:
        try:
            return await fenced.store.multi(list(operations))
        except StoreUnreachable:
            fenced.is_unsure = True
            raise

    patch.setattr(FencedStore, "multi", multi)


@mutation
def keep_the_leader(patch: pytest.MonkeyPatch) -> None:
    """A replica that leaves the ISR goes on leading."""
    real = replica_state_machine.without_replica

    def without_replica(former: LeaderAndIsr, replica: int, epoch: int) -> LeaderAndIsr:
        return real(former, replica, epoch)._replace(leader=former.leader)

    patch.setattr(replica_state_machine, "without_replica", without_replica)


@mutation
def hear_former_lives(patch: pytest.MonkeyPatch) -> None:
    """What a broker answered before its restart counts after it."""
    patch.setattr(ActiveController, "_is_still_there", lambda controller, broker: True)


@mutation
def complete_without_election(patch: pytest.MonkeyPatch) -> None:
    """A move is completed though its leader is one of those to go."""

    async def lead_from_target(moves: Reassignments, item: PartitionOf) -> bool:
        await moves._move_epoch(item)
        moves.batch.send()
        return True

    patch.setattr(Reassignments, "_lead_from_target", lead_from_target)


@mutation
def elect_anybody(patch: pytest.MonkeyPatch) -> None:
    """Unclean leaders where nobody allowed them."""
    patch.setattr(ActiveController, "_allows_unclean", lambda controller, topic: True)


@mutation
def keep_the_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    """A new leader in the former one's epoch."""

    def led_by(electorate: Electorate, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        former = electorate.former
        return LeaderAndIsr(electorate.controller_epoch, leader, former.leader_epoch, isr)

    patch.setattr(Electorate, "led_by", led_by)


@mutation
def believe_lost_answers_were_refusals(patch: pytest.MonkeyPatch) -> None:
    """A write whose answer was lost counts as not done."""
    patch.setattr(
        FencedStore,
        "is_unsure",
        property(lambda fenced: False, lambda fenced, value: None),
        raising=False,
    )


@mutation
def trust_the_copy(patch: pytest.MonkeyPatch) -> None:
    """A partition is left without a leader on the word of an old copy."""
    decide = LeadershipWriter._decide

    async def decide_at_once(
        writer: LeadershipWriter, items: Sequence[PartitionOf], by: Decision
    ) -> tuple[list[tuple[PartitionOf, LeaderAndIsr]], list[PartitionOf]]:
        decided, _ = await decide(writer, items, by)
        return decided, []

    async def look_no_more(machine: PartitionStateMachine, items: object) -> None:
        pass

    patch.setattr(LeadershipWriter, "_decide", decide_at_once)
    patch.setattr(PartitionStateMachine, "bring_electable_online", look_no_more)


@mutation
def let_the_dead_stay_in_the_isr(patch: pytest.MonkeyPatch) -> None:
    """A new controller looks only at who is alive."""
    real = ActiveController._bring_up

    async def bring_up(controller: ActiveController) -> None:
        statuses = controller.context.replica_statuses
        hidden = {
            each: status for each, status in statuses.items() if status is ReplicaStatus.OFFLINE
        }
        for each in hidden:
            statuses[each] = ReplicaStatus.NEW
        await real(controller)
        statuses.update(hidden)

    patch.setattr(ActiveController, "_bring_up", bring_up)


@mutation
def say_too_little(patch: pytest.MonkeyPatch) -> None:
    """A broker that comes is not told that what it is told is everything."""
    patch.setattr(
        ControllerBrokerRequestBatch, "mark_leader_and_isr_full", lambda batch, broker_ids: None
    )


@mutation
def forget_that_brokers_were_away(patch: pytest.MonkeyPatch) -> None:
    """Deletions do not go on when a broker returns."""

    async def brokers_started(deletion: TopicDeletion, broker_ids: object) -> None:
        pass

    patch.setattr(TopicDeletion, "brokers_started", brokers_started)


@mutation
def trust_broken_disks(patch: pytest.MonkeyPatch) -> None:
    """Disks that failed are counted as working."""
    patch.setattr(
        ControllerContext,
        "is_online",
        lambda context, replica: replica.broker_id in context.live_brokers,
    )


@mutation
def miss_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A broker that was gone only between two looks was never gone."""
    real = BrokerChanges.registrations_changed

    async def registrations_changed(changes: BrokerChanges, registered: dict[int, object]) -> None:
        known = changes.context.live_brokers
        for broker_id in known.keys() & registered.keys():
            known[broker_id] = registered[broker_id]  # type: ignore[assignment]  # brokers, too
        await real(changes, registered)  # type: ignore[arg-type]  # brokers, too

    patch.setattr(BrokerChanges, "registrations_changed", registrations_changed)


@pytest.mark.parametrize("break_it", short(MUTATIONS, 2), ids=lambda break_it: break_it.__name__)
def test_the_simulator_finds(break_it: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    first_seed_that_fails(run_seed, InvariantBroken, 400)

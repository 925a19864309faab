"""Each checker of the simulator finds a bug that is planted for it.

Every bug has a seed that finds it. Whatever changes how much is left to chance in the product makes
other runs of the same seeds, so those behind it are tried as well. A bug that fewer than one seed
in fifteen finds wants a mix that brings it out, and not another seed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import pytest
from support.selection import short
from support.simulation import Break, first_run_that_fails

from odradek.broker.dynamic_config.acl_manager import AclManager
from odradek.broker.interbroker.feature_follower import FeatureFollower
from odradek.common.errors import ErrorCode
from odradek.common.partition_state import LeaderAndIsr, PartitionState
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
from odradek.coordinator.group.classic.group import ClassicGroup
from odradek.coordinator.group.consumer import current_assignment
from odradek.coordinator.group.consumer.current_assignment import Reconciliation
from odradek.coordinator.group.consumer.member import ConsumerGroupMember
from odradek.coordinator.group.shards import GroupShard
from odradek.coordinator.group.streams.reconciliation import Holders
from odradek.metadata_store.errors import StoreUnreachable
from odradek.metadata_store.store import MetadataStore, Operation, Result
from odradek.replication.fetcher import fetcher
from odradek.replication.fetcher.task import FetcherTask
from odradek.replication.partition.partition import Partition
from odradek.replication.partition.replica import Replica
from odradek.replication.purgatory.delayed_operation import Purgatory
from odradek.replication.read import reading
from odradek.replication.replica_manager import ReplicaManager
from odradek.storage.log.log import Log
from odradek.storage.producer_state.producer_state import ProducerState
from odradek.storage.producer_state.producer_state_manager import ProducerStateManager
from odradek.storage.segment.log_segment import LogSegment
from odradek.tools.simulation.checkers.invariants import InvariantBroken
from odradek.tools.simulation.faults import Faults
from odradek.tools.simulation.mix import (
    ACLS,
    CALM,
    FEATURES,
    FULL,
    GROUPS,
    LOGS,
    RESTARTS,
    RETENTION,
    STREAMS,
    Mix,
)
from odradek.tools.simulation.runs import SECONDS, Run, run

SEEDS_TRIED = 40
"""Runs of a second or two each; most bugs are found by the first."""
SEEDS_SOAK = 2_000

MUTATIONS: list[tuple[Break, Run]] = []
"""What breaks the product on purpose, each with a run that finds it."""

RARE: list[Break] = []
"""What does so too, and is found by no run that is known."""


@pytest.fixture(autouse=True)
def _silent_logs() -> Iterator[None]:
    """Brokers in trouble say so, a thousand times. Errors are looked at."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def found_by(seed: int, mix: Mix = LOGS, seconds: float = SECONDS) -> Callable[[Break], Break]:
    """A bug that the run of a seed finds."""

    def add(break_it: Break) -> Break:
        MUTATIONS.append((break_it, Run(seed, mix, seconds)))
        return break_it

    return add


def rarely_found(break_it: Break) -> Break:
    """A bug that takes many runs: they are for a soak."""
    RARE.append(break_it)
    return break_it


# -- the controller ---------------------------------------------------------------------------


@rarely_found
def forget_the_fence(patch: pytest.MonkeyPatch) -> None:
    """A controller that was replaced writes all the same."""

    async def multi(fenced: FencedStore, operations: Collection[Operation]) -> list[Result]:
        try:
            return await fenced.store.multi(list(operations))
        except StoreUnreachable:
            fenced.is_unsure = True
            raise

    patch.setattr(FencedStore, "multi", multi)


@found_by(0)
def keep_the_leader(patch: pytest.MonkeyPatch) -> None:
    """A replica that leaves the ISR goes on leading."""
    real = replica_state_machine.without_replica

    def without_replica(former: LeaderAndIsr, replica: int, epoch: int) -> LeaderAndIsr:
        return real(former, replica, epoch)._replace(leader=former.leader)

    patch.setattr(replica_state_machine, "without_replica", without_replica)


@rarely_found
def hear_former_lives(patch: pytest.MonkeyPatch) -> None:
    """What a broker answered before its restart counts after it."""
    patch.setattr(ActiveController, "_is_still_there", lambda controller, broker: True)


@rarely_found
def complete_without_election(patch: pytest.MonkeyPatch) -> None:
    """A move is completed though its leader is one of those to go."""

    async def lead_from_target(moves: Reassignments, item: PartitionOf) -> bool:
        await moves._move_epoch(item)
        moves.batch.send()
        return True

    patch.setattr(Reassignments, "_lead_from_target", lead_from_target)


@found_by(2)
def elect_anybody(patch: pytest.MonkeyPatch) -> None:
    """Unclean leaders where nobody allowed them."""
    patch.setattr(ActiveController, "_allows_unclean", lambda controller, topic: True)


@found_by(1)
def keep_the_leader_epoch(patch: pytest.MonkeyPatch) -> None:
    """A new leader in the former one's epoch."""

    def led_by(electorate: Electorate, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
        former = electorate.former
        return LeaderAndIsr(electorate.controller_epoch, leader, former.leader_epoch, isr)

    patch.setattr(Electorate, "led_by", led_by)


@rarely_found
def believe_lost_answers_were_refusals(patch: pytest.MonkeyPatch) -> None:
    """A write whose answer was lost counts as not done."""
    patch.setattr(
        FencedStore,
        "is_unsure",
        property(lambda fenced: False, lambda fenced, value: None),
        raising=False,
    )


@rarely_found
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


@found_by(0)
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


@rarely_found
def say_too_little(patch: pytest.MonkeyPatch) -> None:
    """A broker that comes is not told that what it is told is everything."""
    patch.setattr(
        ControllerBrokerRequestBatch, "mark_leader_and_isr_full", lambda batch, broker_ids: None
    )


@found_by(0)
def forget_that_brokers_were_away(patch: pytest.MonkeyPatch) -> None:
    """Deletions do not go on when a broker returns."""

    async def brokers_started(deletion: TopicDeletion, broker_ids: object) -> None:
        pass

    patch.setattr(TopicDeletion, "brokers_started", brokers_started)


@rarely_found
def trust_broken_disks(patch: pytest.MonkeyPatch) -> None:
    """Disks that failed are counted as working."""
    patch.setattr(
        ControllerContext,
        "is_online",
        lambda context, replica: replica.broker_id in context.live_brokers,
    )


@found_by(3, RESTARTS)
def miss_a_restart(patch: pytest.MonkeyPatch) -> None:
    """A broker that was gone only between two looks was never gone."""
    real = BrokerChanges.registrations_changed

    async def registrations_changed(changes: BrokerChanges, registered: dict[int, object]) -> None:
        known = changes.context.live_brokers
        for broker_id in known.keys() & registered.keys():
            known[broker_id] = registered[broker_id]  # type: ignore[assignment]  # brokers, too
        await real(changes, registered)  # type: ignore[arg-type]  # brokers, too

    patch.setattr(BrokerChanges, "registrations_changed", registrations_changed)


# -- replication ------------------------------------------------------------------------------


@found_by(5)
def never_truncate(patch: pytest.MonkeyPatch) -> None:
    """A follower is not told where the logs part, and goes on behind what it has."""
    patch.setattr(reading, "_diverging_epoch", lambda partition, requested: None)


@found_by(1)
def leave_what_diverges(patch: pytest.MonkeyPatch) -> None:
    """It is told where the logs part, and cuts nothing."""
    patch.setattr(Partition, "truncate_to", lambda partition, offset: None)


@found_by(0)
def truncate_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """As before KIP-101: what is committed may lie above it."""

    def make_follower(partition: Partition, state: PartitionState) -> bool:
        is_new_epoch = real(partition, state)
        if is_new_epoch:
            partition.truncate_to(partition.high_watermark)
        return is_new_epoch

    real = Partition.make_follower
    patch.setattr(Partition, "make_follower", make_follower)


@found_by(0)
def acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    """acks=all does not wait for the ISR."""
    patch.setattr(
        Partition, "has_replicated", lambda partition, required_offset: (True, ErrorCode.NONE)
    )


@found_by(15)
def count_on_a_pending_shrink(patch: pytest.MonkeyPatch) -> None:
    """The high watermark does not wait for those that are about to leave the ISR."""
    real = Partition._propose

    def propose(partition: Partition, isr: Iterable[int]) -> LeaderAndIsr:
        change = real(partition, isr)
        partition.maximal_isr = change.isr
        return change

    patch.setattr(Partition, "_propose", propose)


@rarely_found
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


@found_by(0)
def expand_below_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Whoever fetches joins."""

    def maybe_expand_isr(partition: Partition, replica: Replica) -> LeaderAndIsr | None:
        if partition.pending_isr_change is not None:
            return None
        return partition._propose((*partition.isr, replica.broker_id))

    patch.setattr(Partition, "maybe_expand_isr", maybe_expand_isr)


@found_by(3)
def use_every_answer(patch: pytest.MonkeyPatch) -> None:
    """A fetch's answer counts whatever became of the partition since it was asked."""
    patch.setattr(fetcher, "_is_stale", lambda state, requested, now_ms: False)


@found_by(5)
def use_answers_of_former_epochs(patch: pytest.MonkeyPatch) -> None:
    """It counts in the next leader epoch, too, if the fetch offset is the same."""
    patch.setattr(
        fetcher,
        "_is_stale",
        lambda state, requested, now_ms: state.fetch_offset != requested.fetch_offset,
    )


@found_by(2, FULL)
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


@rarely_found
def believe_in_a_refused_change(patch: pytest.MonkeyPatch) -> None:
    """A refused change of the ISR counts as one that was never tried, or as done."""
    patch.setattr(
        Partition,
        "isr_change_failed",
        lambda partition, change, outcome: partition._commit(change.isr),
    )


@rarely_found
def forget_a_change_that_may_be_written(patch: pytest.MonkeyPatch) -> None:
    """The high watermark goes by the ISR as it was, and not by the one it may become."""

    def propose(partition: Partition, isr: Iterable[int]) -> LeaderAndIsr:
        change = real(partition, isr)
        partition.maximal_isr = partition.isr
        return change

    real = Partition._propose
    patch.setattr(Partition, "_propose", propose)


@found_by(2)
def run_ahead_of_the_log(patch: pytest.MonkeyPatch) -> None:
    """A follower takes over a high watermark that lies behind the end of its log."""

    def update(partition: Partition, leader_high_watermark: int) -> int:
        partition._move_high_watermark(max(leader_high_watermark, partition.high_watermark))
        return partition.high_watermark

    patch.setattr(Partition, "update_follower_high_watermark", update)


@rarely_found
def take_an_older_epochs_state(patch: pytest.MonkeyPatch) -> None:
    """An answer to a change of the ISR counts in the next leader epoch."""

    def settle(partition: Partition, change: LeaderAndIsr, partition_epoch: int) -> bool:
        partition._commit(change.isr)
        partition.partition_epoch = partition_epoch
        return True

    patch.setattr(Partition, "settle_isr_change", settle)


@found_by(1)
def let_all_lose_power(patch: pytest.MonkeyPatch) -> None:
    """More than Kafka promises to survive, so that the promise is seen to be tight."""
    patch.setattr(Faults, "may_lose_power", lambda faults, broker: True)


@rarely_found
def keep_the_log_of_a_former_topic(patch: pytest.MonkeyPatch) -> None:
    """A log that a broker has of a deleted topic keeps the next one of that name away."""
    patch.setattr(ReplicaManager, "_set_former_topic_aside", lambda manager, state: None)


# -- retention --------------------------------------------------------------------------------


@found_by(0, RETENTION)
def delete_beyond_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Records go once they are old, whether they are replicated or not."""
    real = Log._count_deletable

    def count_deletable(log: Log, now_ms: int, high_watermark: int, most: int | None) -> int:
        return real(log, now_ms, log.log_end_offset, most)

    patch.setattr(Log, "_count_deletable", count_deletable)


@found_by(1, CALM, 1_800)
def go_by_the_oldest_record(patch: pytest.MonkeyPatch) -> None:
    """A segment goes with its first record, even the one that is written to."""
    patch.setattr(LogSegment, "largest_timestamp", lambda segment: segment.first_timestamp)


@found_by(1, RETENTION)
def take_a_leaders_start_for_more(patch: pytest.MonkeyPatch) -> None:
    """A follower deletes one record more than its leader has."""
    real = Partition.advance_follower_log_start

    def advance(partition: Partition, leader_log_start_offset: int) -> None:
        more = min(leader_log_start_offset + 1, partition.high_watermark)
        real(partition, more if leader_log_start_offset else 0)

    patch.setattr(Partition, "advance_follower_log_start", advance)


# -- brokers ---------------------------------------------------------------------------------


@rarely_found
def obey_replaced_controllers(patch: pytest.MonkeyPatch) -> None:
    """What a controller sent before it was replaced is done when it comes."""

    def admit(manager: ReplicaManager, controller_epoch: int) -> bool:
        manager._controller_epoch = max(controller_epoch, manager._controller_epoch)
        return True

    patch.setattr(ReplicaManager, "admit_controller", admit)


@rarely_found
def let_fetchers_go_on(patch: pytest.MonkeyPatch) -> None:
    """A fetcher that is closed goes on with its connection."""
    patch.setattr(FetcherTask, "close", lambda task: None)


@rarely_found
def leave_requests_unanswered(patch: pytest.MonkeyPatch) -> None:
    """A request that has waited for too long is forgotten.

    A follower's Fetch that opened a session showed it in most runs, as long as those waited.
    """
    patch.setattr(Purgatory, "_expire", lambda purgatory, operation: None)


@found_by(0, ACLS)
def hear_of_no_changed_acls(patch: pytest.MonkeyPatch) -> None:
    """A broker goes by the ACLs that it found when it started, and those it changed itself."""

    async def ignore(manager: AclManager, *notification: object) -> None: ...

    patch.setattr(AclManager, "_changed", ignore)


@found_by(0, FEATURES)
def keep_the_levels_of_features(patch: pytest.MonkeyPatch) -> None:
    """A broker goes by the levels that were finalized when it started."""
    patch.setattr(FeatureFollower, "_read_soon", lambda follower: None)


@found_by(2, ACLS._replace(fault_ms=800, faults={"session": 1, "answer": 1}))
def keep_quiet_about_another_session(patch: pytest.MonkeyPatch) -> None:
    """Who opens another session with the store does not say that the one before is given up."""
    patch.setattr(MetadataStore, "_give_up_session", lambda store: None)


# -- producers, groups and transactions --------------------------------------------------------


@found_by(1)
def append_what_was_appended(patch: pytest.MonkeyPatch) -> None:
    """A producer's batch that comes twice is there twice."""
    patch.setattr(ProducerState, "find_batch", lambda state, first, last: None)
    patch.setattr(ProducerStateManager, "_refuse_gap", lambda states, *batch: None)


@found_by(1, FULL)
def give_what_others_own(patch: pytest.MonkeyPatch) -> None:
    """A member of a group is given partitions that another one has not given up."""
    real = current_assignment._take_step

    def take_step(way: Reconciliation, member_epoch: int) -> ConsumerGroupMember:
        return real(way._replace(is_taken=lambda *partition: False), member_epoch)

    patch.setattr(current_assignment, "_take_step", take_step)


@found_by(0, STREAMS)
def give_tasks_that_others_have(patch: pytest.MonkeyPatch) -> None:
    """A member of a streams group is given tasks that another one has not given up."""
    patch.setattr(Holders, "is_active_taken", lambda holders, *task: False)


@found_by(0, GROUPS)
def go_on_without_members_that_have_not_joined_again(patch: pytest.MonkeyPatch) -> None:
    """A classic group's next generation begins with the first member that joins."""
    patch.setattr(
        ClassicGroup, "has_all_members_joined", lambda group: group.members_awaiting_join > 0
    )


@found_by(2, FULL)
def forget_what_groups_commit(patch: pytest.MonkeyPatch) -> None:
    """A group's offsets are not there any more once another broker coordinates it."""
    patch.setattr(GroupShard, "_replay_offset", lambda shard, *record: None)


@found_by(0, FULL)
def show_what_was_aborted(patch: pytest.MonkeyPatch) -> None:
    """Who reads committed is not told which transactions were aborted."""
    patch.setattr(Log, "aborted_transactions_in", lambda log, read: [])


@pytest.mark.parametrize(
    "mutation", short(MUTATIONS, 2), ids=[break_it.__name__ for break_it, _ in MUTATIONS]
)
def test_the_simulator_finds(mutation: tuple[Break, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    break_it, what = mutation
    break_it(monkeypatch)
    first_run_that_fails(what, SEEDS_TRIED)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("break_it", RARE, ids=lambda break_it: break_it.__name__)
def test_the_simulator_finds_in_many_runs(break_it: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)
    first_run_that_fails(Run(0, LOGS), SEEDS_SOAK)


def test_a_failure_says_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    break_it, what = MUTATIONS[0]
    break_it(monkeypatch)
    found = first_run_that_fails(what, SEEDS_TRIED)
    with pytest.raises(InvariantBroken, match=f"python -m odradek.tools.simulation {found}"):
        run(found)

"""A leader's followers: who is in sync, how the ISR changes, how far the high watermark goes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import LeaderAndIsr
from odradek.common.topic_partition import TopicPartition
from odradek.replication.fetcher.fetch_state import InitialFetchState
from odradek.replication.partition.partition import FetchIsolation, IsrChangeOutcome, Partition
from odradek.replication.purgatory.idle_partition_cache import IdlePartitionCache, idle_partition
from odradek.replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from odradek.runtime.steps import run_at_once

if TYPE_CHECKING:
    from .conftest import Bench

T0 = TopicPartition("t", 0)
LAG_MS_MAX = 30_000
ALL = (1, 2, 3)


def params_of(broker_id: int) -> FetchParams:
    return FetchParams(0, 1, 1 << 20, FetchIsolation.LOG_END, replica_id=broker_id)


class RecordedPeers:
    """Two other brokers; what is asked of them is noted, and answered by the test."""

    def __init__(self) -> None:
        self.alive = {2, 3}
        self.changes: list[LeaderAndIsr] = []
        self.fetched: dict[TopicPartition, InitialFetchState] = {}

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.alive

    def submit_isr_change(self, partition: Partition, change: LeaderAndIsr) -> None:
        self.changes.append(change)

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        self.fetched.update(partitions)

    def remove_fetchers(self, partitions: Collection[TopicPartition]) -> None:
        for each in partitions:
            self.fetched.pop(each, None)


class Leader:
    """A partition led by broker 1, with replicas on 1, 2 and 3."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.peers = RecordedPeers()
        bench.manager.peers = self.peers
        self.epoch = 0
        self.version = 0

    def lead(self, isr: tuple[int, ...] = ALL, min_isr: int = 1) -> None:
        self.epoch += 1
        self.version += 1
        config = {"min.insync.replicas": str(min_isr)}
        state = self.bench.state(
            leader_epoch=self.epoch,
            partition_epoch=self.version,
            isr=isr,
            replicas=ALL,
            config=config,
        )
        self.bench.lead(state)

    @property
    def partition(self) -> Partition:
        found = self.bench.manager.get_partition(T0)
        assert found is not None
        return found

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            self.bench.produce("t", b"value")

    def fetch(self, broker_id: int, offset: int, log_start: int = 0) -> FetchPartitionData:
        """What a follower is answered that asks for an offset."""
        return self.answered(broker_id, offset, log_start)[1]

    def answered(
        self, broker_id: int, offset: int, log_start: int = 0
    ) -> tuple[FetchPartition, FetchPartitionData]:
        """The same, and how it asks."""
        answers: list[FetchResults] = []
        requested = FetchPartition(
            T0, bytes(16), offset, 1 << 20, self.partition.leader_epoch, log_start_offset=log_start
        )
        self.bench.manager.fetch_messages(params_of(broker_id), [requested], answers.append)
        ((_, data),) = answers[0]
        return requested, data

    def wait(self, milliseconds: int) -> None:
        self.bench.advance(milliseconds)

    def settle(self, version: int | None = None) -> bool:
        """The last change is written."""
        self.version = self.version + 1 if version is None else version
        changed = self.partition.isr_changed(self.peers.changes[-1], self.version)
        self.bench.manager.flush()
        return changed


@pytest.fixture
def leader(bench: Bench) -> Leader:
    return Leader(bench)


def test_an_older_fetch_that_is_read_late_does_not_hide_how_far_a_follower_is(
    leader: Leader,
) -> None:
    """As after a freeze of the leader, with both in its sockets. Kafka looks at all partitions of
    a session with each fetch; a partition that is idle here must not stay so."""
    leader.lead(isr=(1, 2))
    leader.append(3)
    table = leader.bench.manager.partitions
    newer = leader.answered(2, 3)
    idle = idle_partition(table, params_of(2), *newer)
    assert idle is not None
    session = IdlePartitionCache(leader.bench.manager.delayed_fetch)
    session.add(idle)
    leader.fetch(2, 1)
    assert leader.partition.remote_replicas[2].log_end_offset == 1
    assert session.idle == {}
    assert idle_partition(table, params_of(2), *newer) is None
    leader.fetch(2, 3)
    assert idle_partition(table, params_of(2), *newer) is not None


def test_the_high_watermark_is_the_least_end_over_the_isr(leader: Leader) -> None:
    leader.lead()
    leader.append(3)
    assert leader.partition.high_watermark == 0
    leader.fetch(2, 3)
    assert leader.partition.high_watermark == 0
    leader.fetch(3, 2)
    assert leader.partition.high_watermark == 2
    leader.fetch(3, 3)
    assert leader.partition.high_watermark == 3


def test_the_high_watermark_waits_for_one_that_is_about_to_join_the_isr(leader: Leader) -> None:
    leader.lead(isr=(1, 2))
    leader.append(2)
    leader.fetch(2, 2)
    assert leader.partition.high_watermark == 2
    leader.fetch(3, 1)
    leader.append()
    leader.fetch(2, 3)
    # Broker 3 was never caught up, and is not in the ISR: nobody waits for it.
    assert leader.partition.high_watermark == 3
    leader.fetch(3, 3)  # now it is
    assert leader.partition.maximal_isr == (1, 2, 3)
    leader.append()
    leader.fetch(2, 4)
    assert leader.partition.high_watermark == 3
    leader.fetch(3, 4)
    assert leader.partition.high_watermark == 4


def test_a_caught_up_replica_counts_before_its_expansion_is_proposed(leader: Leader) -> None:
    leader.lead(isr=(1, 2))
    leader.append(2)
    leader.fetch(2, 2)
    leader.peers.alive.discard(3)
    leader.fetch(3, 2)
    assert leader.peers.changes == []  # not while its broker is not known to be alive
    leader.append()
    leader.fetch(2, 3)
    assert leader.partition.high_watermark == 3  # nor does anybody wait for it
    leader.fetch(3, 3)
    leader.peers.alive.add(3)
    leader.append()
    leader.fetch(2, 4)
    assert leader.partition.isr == (1, 2)
    assert leader.partition.high_watermark == 3


def test_below_the_least_isr_nothing_is_committed(leader: Leader) -> None:
    leader.lead(isr=(1,), min_isr=2)
    leader.append(2)
    assert leader.partition.high_watermark == 0
    leader.fetch(2, 2)
    assert leader.partition.high_watermark == 0
    leader.settle()
    assert leader.partition.high_watermark == 2


def test_who_does_not_keep_up_leaves_the_isr(leader: Leader) -> None:
    leader.lead()
    leader.append(2)
    leader.fetch(2, 2)
    leader.wait(LAG_MS_MAX)
    leader.fetch(2, 2)
    run_at_once(leader.bench.manager.shrink_isrs())
    assert leader.peers.changes == []  # just so long is long enough
    leader.wait(1)
    run_at_once(leader.bench.manager.shrink_isrs())
    (change,) = leader.peers.changes
    assert change == LeaderAndIsr(1, 1, 1, (1, 2), 1)
    assert leader.partition.isr == ALL
    assert leader.partition.high_watermark == 0  # the shrink may fail still
    assert leader.settle()
    assert leader.partition.isr == (1, 2)
    assert leader.partition.high_watermark == 2
    run_at_once(leader.bench.manager.shrink_isrs())
    assert len(leader.peers.changes) == 1


def test_one_that_has_everything_stays_in_sync_however_long_it_is_silent(leader: Leader) -> None:
    leader.lead()
    leader.append()
    leader.fetch(2, 1)
    leader.fetch(3, 1)
    leader.wait(10 * LAG_MS_MAX)
    run_at_once(leader.bench.manager.shrink_isrs())
    assert leader.peers.changes == []


def test_one_that_is_always_a_little_behind_a_busy_leader_stays_in_sync(leader: Leader) -> None:
    leader.lead()
    for offset in range(5):
        leader.append()
        leader.fetch(2, offset)  # what the leader had at its last fetch
        leader.fetch(3, 0)
        leader.wait(LAG_MS_MAX // 2)
    assert leader.partition.out_of_sync_replicas(leader.bench.clock.monotonic_ms()) == [3]


def test_a_new_leader_gives_those_in_sync_one_lag_time_to_show_themselves(leader: Leader) -> None:
    leader.wait(10 * LAG_MS_MAX)
    leader.lead(isr=(1, 2))
    leader.append()
    leader.wait(LAG_MS_MAX)
    now_ms = leader.bench.clock.monotonic_ms()
    assert leader.partition.out_of_sync_replicas(now_ms) == []
    assert leader.partition.out_of_sync_replicas(now_ms + 1) == [2]
    # One that is not in the ISR counts as long behind, so nobody waits for it.
    assert not leader.partition.remote_replicas[3].is_caught_up(1, now_ms, LAG_MS_MAX)


def test_who_reaches_the_high_watermark_joins_the_isr(leader: Leader) -> None:
    leader.lead(isr=(1, 2))
    leader.append(3)
    leader.fetch(2, 3)
    leader.fetch(3, 2)
    assert leader.peers.changes == []
    leader.fetch(3, 3)
    (change,) = leader.peers.changes
    assert change.isr == (1, 2, 3)
    assert leader.partition.isr == (1, 2)
    leader.fetch(3, 3)
    assert len(leader.peers.changes) == 1  # one at a time
    assert leader.settle()
    assert leader.partition.isr == (1, 2, 3)


def test_who_has_not_reached_where_the_leader_began_does_not_join(leader: Leader) -> None:
    leader.lead()
    leader.append(3)  # nobody has them: the high watermark is 0
    leader.lead(isr=(1, 2))
    assert leader.partition.leader_epoch_start_offset == 3
    leader.fetch(3, 2)
    assert leader.partition.high_watermark == 0
    assert leader.peers.changes == []
    leader.fetch(3, 3)
    assert [change.isr for change in leader.peers.changes] == [(1, 2, 3)]


def test_a_refused_change_stays_pending_until_the_controller_is_heard_of(leader: Leader) -> None:
    leader.lead(isr=(1, 2))
    leader.append()
    leader.fetch(3, 1)
    (change,) = leader.peers.changes
    leader.partition.isr_change_failed(change, IsrChangeOutcome.REFUSED)
    leader.fetch(2, 1)
    leader.fetch(3, 1)
    leader.wait(2 * LAG_MS_MAX)
    run_at_once(leader.bench.manager.shrink_isrs())
    assert leader.peers.changes == [change]
    assert leader.partition.maximal_isr == (1, 2, 3)
    leader.version += 1  # whoever was faster
    leader.lead(isr=(1, 2))
    assert leader.partition.maximal_isr == (1, 2)
    leader.fetch(3, 1)
    assert len(leader.peers.changes) == 2


def test_a_change_that_was_not_attempted_may_be_proposed_anew(leader: Leader) -> None:
    leader.lead(isr=(1, 2))
    leader.fetch(3, 0)
    leader.partition.isr_change_failed(leader.peers.changes[0], IsrChangeOutcome.NOT_ATTEMPTED)
    assert leader.partition.maximal_isr == (1, 2)
    leader.fetch(3, 0)
    assert len(leader.peers.changes) == 2


def test_the_end_of_a_change_counts_only_while_leadership_is_the_same(leader: Leader) -> None:
    leader.lead(isr=(1, 2))
    leader.fetch(3, 0)
    late = leader.peers.changes[0]
    leader.lead(isr=(1,))
    assert not leader.partition.isr_changed(late, 99)
    assert leader.partition.isr == (1,)
    assert leader.partition.partition_epoch == leader.version
    leader.fetch(3, 0)
    assert not leader.settle(version=0)  # older than what is known


def test_the_same_leader_in_a_new_epoch_remembers_how_far_its_followers_are(
    leader: Leader,
) -> None:
    leader.lead()
    leader.append(2)
    leader.fetch(2, 2)
    leader.fetch(3, 1)
    leader.lead()
    assert leader.partition.remote_replicas[2].log_end_offset == 2
    leader.fetch(3, 2)
    assert leader.partition.high_watermark == 2


def test_one_that_led_before_and_leads_again_knows_nothing_of_its_followers(
    leader: Leader, bench: Bench
) -> None:
    leader.lead()
    leader.append(2)
    leader.fetch(2, 2)
    leader.epoch += 1
    leader.version += 1
    bench.lead(
        bench.state(
            leader=2,
            leader_epoch=leader.epoch,
            partition_epoch=leader.version,
            isr=ALL,
            replicas=ALL,
        )
    )
    assert leader.partition.remote_replicas == {}
    assert leader.peers.fetched[T0].leader_id == 2
    leader.lead()
    assert leader.peers.fetched == {}
    assert leader.partition.remote_replicas[2].log_end_offset == -1


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)],
)
def test_a_fetch_of_a_replica_that_is_none_is_refused(
    leader: Leader, epoch: int, error: ErrorCode
) -> None:
    leader.lead()
    answers: list[FetchResults] = []
    params = FetchParams(0, 1, 1 << 20, FetchIsolation.LOG_END, replica_id=9)
    requested = FetchPartition(T0, bytes(16), 0, 1 << 20, epoch)
    leader.bench.manager.fetch_messages(params, [requested], answers.append)
    assert answers[0][0][1].error is error


def test_a_fetch_that_diverges_says_nothing_about_how_far_the_follower_is(leader: Leader) -> None:
    leader.lead()
    leader.append()
    leader.lead()
    answers: list[FetchResults] = []
    params = FetchParams(0, 1, 1 << 20, FetchIsolation.LOG_END, replica_id=2)
    # It has two records of the first epoch, of which the leader has one.
    requested = FetchPartition(T0, bytes(16), 2, 1 << 20, leader.epoch, 1, 0)
    leader.bench.manager.fetch_messages(params, [requested], answers.append)
    assert answers[0][0][1].diverging_epoch == (1, 1)
    assert leader.partition.remote_replicas[2].log_end_offset == -1


def test_a_follower_reads_what_is_not_committed_yet(leader: Leader) -> None:
    leader.lead()
    leader.append(2)
    assert len(leader.fetch(2, 0).records) > 0
    ((_, data),) = leader.bench.fetch(FetchPartition(T0, bytes(16), 0, 1 << 20))[0]
    assert len(data.records) == 0


def test_deleting_records_waits_for_the_living_replicas(leader: Leader) -> None:
    leader.lead()
    leader.append(4)
    for broker_id in (2, 3):
        leader.fetch(broker_id, 4)
    answers: list[Mapping[TopicPartition, tuple[ErrorCode, int]]] = []
    leader.bench.manager.delete_records({T0: 3}, 1000, answers.append)
    leader.fetch(2, 4, log_start=3)
    leader.bench.manager.flush()
    assert answers == []
    leader.fetch(3, 4, log_start=2)
    leader.bench.manager.flush()
    assert answers == []
    leader.peers.alive.discard(3)
    leader.fetch(2, 4, log_start=4)
    leader.bench.manager.flush()
    assert answers == [{T0: (ErrorCode.NONE, 3)}]


def test_a_deletion_that_a_replica_does_not_follow_times_out(leader: Leader) -> None:
    leader.lead()
    leader.append(4)
    for broker_id in (2, 3):
        leader.fetch(broker_id, 4)
    answers: list[Mapping[TopicPartition, tuple[ErrorCode, int]]] = []
    leader.bench.manager.delete_records({T0: 3}, 1000, answers.append)
    leader.wait(1000)
    assert answers == [{T0: (ErrorCode.REQUEST_TIMED_OUT, -1)}]


def test_what_a_broker_requested_before_its_restart_says_nothing_of_what_it_has(
    leader: Leader,
) -> None:
    leader.lead()
    leader.append(2)

    def fetch(offset: int, broker_epoch: int) -> FetchPartitionData:
        answers: list[FetchResults] = []
        params = FetchParams(
            0, 1, 1 << 20, FetchIsolation.LOG_END, replica_id=2, replica_epoch=broker_epoch
        )
        requested = FetchPartition(T0, bytes(16), offset, 1 << 20, leader.epoch, log_start_offset=0)
        leader.bench.manager.fetch_messages(params, [requested], answers.append)
        return answers[0][0][1]

    assert fetch(2, broker_epoch=5).error is ErrorCode.NONE
    assert fetch(0, broker_epoch=6).error is ErrorCode.NONE  # it lost what it had
    assert fetch(2, broker_epoch=5).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.partition.remote_replicas[2].log_end_offset == 0
    assert fetch(1, broker_epoch=-1).error is ErrorCode.NONE  # an older broker does not say

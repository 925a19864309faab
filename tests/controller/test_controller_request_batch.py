"""What one decision asks of the brokers, as few requests in a sound order."""

from __future__ import annotations

import pytest
from support.cluster import RecordingChannel, live_broker

from odradek.common.errors import ErrorCode
from odradek.common.live_broker import LiveBroker
from odradek.common.partition_state import LEADER_DURING_DELETE, LeaderAndIsr, StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.controller.channel.channel import (
    BecomeLeaderOrFollower,
    PartitionErrors,
    StopReplica,
    UpdateMetadata,
)
from odradek.controller.channel.request_batch import ControllerBrokerRequestBatch
from odradek.controller.context import ControllerContext, Reassignment, Topic
from odradek.runtime.long_work import Pace

T0 = TopicPartition("t", 0)


class Bench:
    """A batch of controller 1 in epoch 4, brokers 1 to 3 in epochs 11 to 13, and topic t."""

    def __init__(self) -> None:
        self.context = ControllerContext()
        self.context.epoch = 4
        self.topic = Topic("t", b"t" * 16, {0: (1, 2), 1: (2, 3)}, {"retention.ms": "5"})
        self.topic.leaderships = {
            0: LeaderAndIsr(3, 1, 7, (1, 2), 9),
            1: LeaderAndIsr(3, 2, 0, (2,), 0),
        }
        self.context.add_topic(self.topic)
        self.channel = RecordingChannel()
        for broker_id in (1, 2, 3):
            broker = live_broker(broker_id)._replace(epoch=10 + broker_id)
            self.context.live_brokers[broker_id] = broker
            self.channel.add_broker(broker)
        self.led: list[tuple[LiveBroker, PartitionErrors]] = []
        self.deleted: list[tuple[LiveBroker, PartitionErrors]] = []
        self.batch = ControllerBrokerRequestBatch(
            1,
            self.context,
            self.channel,
            on_leader_and_isr=lambda broker, errors: self.led.append((broker, errors)),
            on_deleted=lambda broker, errors: self.deleted.append((broker, errors)),
            keep_pace=Pace().keep,
        )

    def kinds(self) -> list[tuple[int, str]]:
        """To whom which requests went, in their order."""
        return [(broker_id, type(request).__name__) for broker_id, request in self.channel.sent]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_leader_leads_before_clients_are_told_and_others_stop_last(bench: Bench) -> None:
    bench.batch.add_stop_replica([3], bench.topic, 1, delete=True)
    bench.batch.add_leader_and_isr([2, 1], bench.topic, 0)
    bench.batch.add_leader_and_isr([2], bench.topic, 1)
    bench.batch.send()
    assert bench.kinds() == [
        (1, "BecomeLeaderOrFollower"),
        (2, "BecomeLeaderOrFollower"),
        (1, "UpdateMetadata"),
        (2, "UpdateMetadata"),
        (3, "UpdateMetadata"),
        (3, "StopReplica"),
    ]
    assert [len(request.partition_states) for request in bench.channel.leader_and_isr()] == [1, 2]
    assert {len(request.partition_states) for request in bench.channel.update_metadata()} == {2}
    for broker_id, request in bench.channel.sent:
        assert (request.controller_id, request.controller_epoch) == (1, 4)
        assert request.broker_epoch == 10 + broker_id


async def test_what_was_sent_is_not_sent_again(bench: Bench) -> None:
    bench.batch.add_leader_and_isr([1], bench.topic, 0)
    bench.batch.add_stop_replica([2], bench.topic, 0, delete=False)
    await bench.batch.add_full_update_metadata([3])
    bench.batch.mark_leader_and_isr_full([1])
    bench.batch.send()
    bench.channel.sent.clear()
    bench.batch.send()
    assert bench.channel.sent == []


def test_a_replica_that_is_new_stays_so_however_often_it_is_told(bench: Bench) -> None:
    bench.batch.add_leader_and_isr([1], bench.topic, 0, is_new=True)
    moved = LeaderAndIsr(4, 2, 8, (2,), 10)
    bench.topic.leaderships[0] = moved
    bench.batch.add_leader_and_isr([1, 2], bench.topic, 0)
    bench.batch.send()
    first, second = bench.channel.leader_and_isr()
    (state,) = first.partition_states
    assert (state.is_new, state.leader, state.leader_epoch) == (True, 2, 8)
    assert not second.partition_states[0].is_new


def test_a_replica_to_delete_is_deleted_however_often_it_is_stopped(bench: Bench) -> None:
    bench.batch.add_stop_replica([2], bench.topic, 0, delete=True)
    bench.batch.add_stop_replica([2], bench.topic, 0, delete=False)
    bench.batch.send()
    (request,) = bench.channel.stop_replica(2)
    assert list(request.partitions) == [StoppedReplica(T0, 7, delete=True)]


async def test_nothing_is_sent_to_brokers_that_are_not_there(bench: Bench) -> None:
    bench.batch.add_leader_and_isr([1, 9], bench.topic, 0)
    bench.batch.add_stop_replica([9], bench.topic, 0, delete=True)
    await bench.batch.add_full_update_metadata([9])
    bench.batch.mark_leader_and_isr_full([9])
    bench.batch.send()
    assert 9 not in {broker_id for broker_id, _ in bench.channel.sent}


def test_brokers_are_told_of_leaders_assignments_and_what_is_offline(bench: Bench) -> None:
    bench.topic.reassignments[0] = Reassignment((2,), (1,))
    bench.context.offline_directories[2] = {T0}
    bench.batch.add_leader_and_isr([1], bench.topic, 0)
    bench.batch.send()
    ((state,),) = [request.partition_states for request in bench.channel.leader_and_isr()]
    assert state._asdict() == {
        "topic": "t",
        "topic_id": b"t" * 16,
        "partition": 0,
        "controller_epoch": 3,
        "leader": 1,
        "leader_epoch": 7,
        "isr": (1, 2),
        "partition_epoch": 9,
        "replicas": (1, 2),
        "is_new": False,
        "config": {"retention.ms": "5"},
        "adding_replicas": (2,),
        "removing_replicas": (1,),
        "offline_replicas": (),
    }
    assert bench.channel.leader_and_isr()[0].live_leaders == (bench.context.live_brokers[1],)
    update = bench.channel.update_metadata(3)[0]
    assert update.partition_states[0].offline_replicas == (2,)
    assert [broker.broker_id for broker in update.live_brokers] == [1, 2, 3]


def test_of_a_topic_being_deleted_everyone_learns_that_it_goes(bench: Bench) -> None:
    bench.topic.is_being_deleted = True
    for partition in bench.topic.assignment:
        bench.batch.add_update_metadata([3], bench.topic, partition)
    bench.batch.add_stop_replica([2], bench.topic, 0, delete=True)
    bench.batch.send()
    (update,) = bench.channel.update_metadata()
    assert {state.leader for state in update.partition_states} == {LEADER_DURING_DELETE}
    assert {state.leader_epoch for state in update.partition_states} == {LEADER_DURING_DELETE}
    (request,) = bench.channel.stop_replica()
    assert list(request.partitions) == [StoppedReplica(T0, -2, delete=True)]


async def test_of_a_partition_that_was_never_led_there_is_nothing_to_tell(bench: Bench) -> None:
    del bench.topic.leaderships[1]
    await bench.batch.add_full_update_metadata([3])
    bench.batch.add_stop_replica([3], bench.topic, 1, delete=False)
    bench.batch.send()
    (update,) = bench.channel.update_metadata(3)
    assert [state.partition for state in update.partition_states] == [0]
    assert update.is_full
    (request,) = bench.channel.stop_replica(3)
    assert request.partitions[0].leader_epoch == -1


async def test_full_requests_go_to_those_that_they_are_for_only(bench: Bench) -> None:
    await bench.batch.add_full_update_metadata([2])
    bench.batch.add_live_brokers([1])
    bench.batch.mark_leader_and_isr_full([3])
    bench.batch.add_leader_and_isr([2], bench.topic, 0)
    bench.batch.send()
    full = {
        (broker_id, type(request))
        for broker_id, request in bench.channel.sent
        if isinstance(request, BecomeLeaderOrFollower | UpdateMetadata) and request.is_full
    }
    assert full == {(2, UpdateMetadata), (3, BecomeLeaderOrFollower)}
    assert bench.channel.leader_and_isr(3)[0].partition_states == ()


def test_answers_come_with_the_life_of_the_broker_that_was_spoken_to(bench: Bench) -> None:
    bench.channel.is_silent = True
    spoken_to = bench.context.live_brokers[2]
    bench.batch.add_leader_and_isr([2], bench.topic, 0)
    bench.batch.add_stop_replica([2], bench.topic, 1, delete=True)
    bench.batch.send()
    bench.context.live_brokers[2] = spoken_to._replace(epoch=99)
    bench.channel.answer_all()
    assert bench.led == [(spoken_to, {T0: ErrorCode.NONE})]
    assert bench.deleted == [(spoken_to, {TopicPartition("t", 1): ErrorCode.NONE})]


def test_only_deletions_are_reported_and_what_is_not_answered_failed(bench: Bench) -> None:
    bench.batch.add_stop_replica([2], bench.topic, 0, delete=False)
    bench.batch.add_stop_replica([2], bench.topic, 1, delete=True)
    bench.channel.silent_about.add(TopicPartition("t", 1))
    bench.batch.send()
    assert [errors for _, errors in bench.deleted] == [
        {TopicPartition("t", 1): ErrorCode.UNKNOWN_SERVER_ERROR}
    ]
    bench.batch.add_stop_replica([3], bench.topic, 1, delete=False)
    bench.batch.send()
    assert len(bench.deleted) == 1
    assert isinstance(bench.channel.sent[-1][1], StopReplica)

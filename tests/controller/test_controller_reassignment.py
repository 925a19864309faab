"""Partitions on their way to other brokers: begun, cancelled, redirected, refused, completed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest
from support.cluster import Cluster
from support.elected import ElectedController, State, elected_controller

from odradek.common.errors import ErrorCode
from odradek.common.sentinels import NO_LEADER
from odradek.common.topic_partition import TopicPartition
from odradek.controller.context import PartitionAndReplica, Reassignment
from odradek.controller.partitions.leader_elections import ElectionType
from odradek.controller.partitions.states import ReplicaStatus
from odradek.metadata_store.znodes import TopicNode

T0 = TopicPartition("t", 0)


@pytest.fixture
async def controller(cluster: Cluster) -> AsyncIterator[ElectedController]:
    async with elected_controller(cluster, (1, 2, 3, 4)) as controller:
        yield controller


async def reassign(
    controller: ElectedController, target: Sequence[int] | None, *, may_change_factor: bool = True
) -> ErrorCode:
    """Move t-0, or stop moving it."""
    outcomes = await controller.leaders.reassign({T0: target}, may_change_factor=may_change_factor)
    await controller.settle()
    outcome = outcomes[T0]
    return ErrorCode.NONE if outcome is None else outcome.code


async def moving(controller: ElectedController) -> tuple[tuple[int, ...], ...]:
    """Replicas, adding and removing, as the store holds them; the controller knows the same."""
    node = await controller.assigned()
    adding = node.adding_replicas.get(0, ())
    removing = node.removing_replicas.get(0, ())
    listed = await controller.leaders.reassignments([T0])
    if adding or removing:
        assert listed == {T0: (node.assignment[0], Reassignment(adding, removing))}
    else:
        assert listed == {}
    return node.assignment[0], adding, removing


def status(controller: ElectedController, broker_id: int) -> ReplicaStatus:
    return controller.active.context.status(PartitionAndReplica("t", 0, broker_id))


# -- one whole way ------------------------------------------------------------


async def test_a_partition_moves_in_kafkas_steps(controller: ElectedController) -> None:
    """The table in the documentation of KafkaController.onPartitionReassignment."""
    await controller.create("t", {0: (1, 2)})
    assert await reassign(controller, (3, 4)) == ErrorCode.NONE
    assert await moving(controller) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert await controller.state() == (1, 1, (1, 2))
    for broker_id in (1, 2, 3, 4):
        led = controller.led(broker_id)[-1]
        assert led.replicas == (3, 4, 1, 2)
        assert (led.adding_replicas, led.removing_replicas) == ((3, 4), (1, 2))
        assert led.is_new == (broker_id in (3, 4))
    await controller.change_isr((1, 2, 3))
    assert await moving(controller) == ((3, 4, 1, 2), (3, 4), (1, 2))
    controller.channel.sent.clear()
    await controller.change_isr((1, 2, 3, 4))
    assert await moving(controller) == ((3, 4), (), ())
    leader, _, isr = await controller.state()
    assert (leader, isr) == (3, (3, 4))
    for broker_id in (1, 2):
        assert ("t", 0, True) in controller.stopped(broker_id)
        assert status(controller, broker_id) is ReplicaStatus.NON_EXISTENT
    for broker_id in (3, 4):
        assert controller.stopped(broker_id) == []
        assert status(controller, broker_id) is ReplicaStatus.ONLINE
        assert controller.led(broker_id)[-1].leader == 3
    for broker_id in (1, 2, 3, 4):
        reported = controller.reported(broker_id)
        assert reported is not None
        assert (reported.leader, reported.isr, reported.replicas) == (3, (3, 4), (3, 4))


async def test_a_move_to_another_broker_takes_as_many_leader_epochs_as_kafkas(
    controller: ElectedController,
) -> None:
    """One to begin, one for the new leader, one for the ISR without the old."""
    await controller.create("t", {0: (1,)})
    await reassign(controller, (2,))
    await controller.change_isr((1, 2))
    assert await controller.state() == (2, 3, (2,))


@pytest.mark.parametrize(
    ("replicas", "target", "isr", "left"),
    [
        # Replicas that are there already stay, and the leader if it is one of them.
        ((1, 2), (1, 3), (1, 2, 3), (1, (1, 3))),
        ((1, 2), (2, 3), (1, 2, 3), (2, (2, 3))),
        # More replicas, and fewer.
        ((1,), (1, 2, 3), (1, 2, 3), (1, (1, 2, 3))),
        ((1, 2, 3), (3,), (1, 2, 3), (3, (3,))),
        ((1, 2, 3), (1, 2), (1, 2, 3), (1, (1, 2))),
        # Another order only.
        ((1, 2), (2, 1), (1, 2), (1, (1, 2))),
        # The first of the new ones in sync leads, not the one that was there.
        ((1, 2), (4, 2), (1, 2, 4), (4, (2, 4))),
    ],
)
async def test_a_partition_ends_where_it_was_sent(
    controller: ElectedController,
    replicas: tuple[int, ...],
    target: tuple[int, ...],
    isr: tuple[int, ...],
    left: tuple[int, tuple[int, ...]],
) -> None:
    await controller.create("t", {0: replicas})
    assert await reassign(controller, target) == ErrorCode.NONE
    if set(isr) - set(replicas):
        await controller.change_isr(isr)
    assert await moving(controller) == (target, (), ())
    leader, _, in_sync = await controller.state()
    assert (leader, in_sync) == left
    gone = set(replicas) - set(target)
    for broker_id in (1, 2, 3, 4):
        assert (("t", 0, True) in controller.stopped(broker_id)) == (broker_id in gone)
    # Where it is now survives a new controller.
    await controller.elect(1)
    assert controller.topic("t").assignment[0] == target
    assert not controller.topic("t").is_reassigning


async def test_a_replica_to_remove_waits_for_those_that_stay(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2, 3)})
    await controller.change_isr((1, 3))
    assert await reassign(controller, (1, 2)) == ErrorCode.NONE
    assert await moving(controller) == ((1, 2, 3), (), (3,))
    await controller.change_isr((1, 2, 3))
    assert await moving(controller) == ((1, 2), (), ())


# -- cancelled and redirected ------------------------------------------------------------


async def test_a_cancelled_move_leaves_what_was_there_and_deletes_what_was_added(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2)})
    await reassign(controller, (3, 4))
    await controller.change_isr((1, 2, 3))
    assert await reassign(controller, None) == ErrorCode.NONE
    assert await moving(controller) == ((1, 2), (), ())
    leader, _, isr = await controller.state()
    assert (leader, isr) == (1, (1, 2))
    for broker_id in (3, 4):
        assert ("t", 0, True) in controller.stopped(broker_id)
    assert await reassign(controller, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def test_a_cancelled_move_whose_new_replica_leads_gives_the_lead_back(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2)})
    await reassign(controller, (3, 4))
    await controller.change_isr((1, 2, 3))
    await controller.leaders.elect(ElectionType.PREFERRED, [T0])
    assert (await controller.state())[0] == 3
    assert await reassign(controller, None) == ErrorCode.NONE
    leader, _, isr = await controller.state()
    assert (leader, isr) == (1, (1, 2))
    assert controller.led(1)[-1].leader == 1


async def test_a_move_that_only_new_replicas_are_in_sync_for_is_not_cancelled(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2)})
    await reassign(controller, (3, 4))
    await controller.change_isr((1, 2, 3))
    await controller.leaders.elect(ElectionType.PREFERRED, [T0])
    await controller.change_isr((3,))
    assert await reassign(controller, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await moving(controller) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert (await controller.state())[0] == 3


async def test_a_move_is_not_cancelled_to_where_nobody_is_alive(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2,)})
    await reassign(controller, (3,))
    await controller.fail(2)
    assert await reassign(controller, None) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


async def test_a_move_may_be_sent_elsewhere_on_its_way(controller: ElectedController) -> None:
    await controller.create("t", {0: (1,)})
    await reassign(controller, (2, 3))
    await controller.change_isr((1, 2))
    assert await reassign(controller, (3, 4)) == ErrorCode.NONE
    assert await moving(controller) == ((3, 4, 1), (3, 4), (1,))
    assert ("t", 0, True) in controller.stopped(2)
    assert (await controller.state())[2] == (1,)
    assert [state.is_new for state in controller.led(3)][-1] is False  # it follows already
    assert [state.is_new for state in controller.led(4)] == [True]
    await controller.change_isr((1, 3, 4))
    assert await moving(controller) == ((3, 4), (), ())


# -- refused ------------------------------------------------------------


@pytest.mark.parametrize("target", [[], [1, 1], [-1], [1, 9]])
async def test_impossible_targets_are_refused_and_change_nothing(
    controller: ElectedController, target: list[int]
) -> None:
    await controller.create("t", {0: (1, 2)})
    assert await reassign(controller, target) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert await moving(controller) == ((1, 2), (), ())
    assert controller.channel.sent == []


async def test_partitions_that_are_not_there_are_refused_and_the_others_moved(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1,)})
    await controller.create("going", {0: (1,)})
    controller.channel.is_silent = True
    await controller.topics.delete([controller.topic("going").topic_id])
    unknown = [TopicPartition("t", 1), TopicPartition("no", 0), TopicPartition("going", 0)]
    outcomes = await controller.leaders.reassign({T0: (2,), **dict.fromkeys(unknown, (2,))})
    codes = {each: outcome and outcome.code for each, outcome in outcomes.items()}
    assert codes == {T0: None} | dict.fromkeys(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert list(await controller.leaders.reassignments(None)) == [T0]


async def test_the_number_of_replicas_stays_where_the_request_says_so(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2)})
    for target in ((1,), (1, 2, 3)):
        code = await reassign(controller, target, may_change_factor=False)
        assert code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert await reassign(controller, (1, 3), may_change_factor=False) == ErrorCode.NONE
    # On the way there are three replicas; what counts is where it goes.
    assert await reassign(controller, (1, 4), may_change_factor=False) == ErrorCode.NONE


# -- brokers that fail on the way ------------------------------------------------------------


async def test_a_move_waits_for_a_broker_that_died_and_goes_on_when_it_is_back(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1,)})
    await reassign(controller, (2,))
    await controller.fail(2)
    await controller.elect(1)
    assert await moving(controller) == ((2, 1), (2,), (1,))
    controller.channel.sent.clear()
    await controller.start(2)
    assert controller.led(2)[-1].adding_replicas == (2,)
    await controller.change_isr((1, 2))
    assert await moving(controller) == ((2,), (), ())
    assert (await controller.state())[0] == 2


async def test_a_move_goes_on_under_the_next_controller(controller: ElectedController) -> None:
    await controller.create("t", {0: (1, 2)})
    await reassign(controller, (3, 4))
    await controller.write_isr((1, 2, 3, 4))  # its note was for the former controller
    await controller.elect(2)
    assert await moving(controller) == ((3, 4), (), ())
    leader, _, isr = await controller.state()
    assert (leader, isr) == (3, (3, 4))


async def test_a_leader_that_dies_before_it_told_of_the_isr_does_not_hold_a_move_up(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 1)})
    await reassign(controller, (3, 1))
    await controller.write_isr((1, 2, 3))
    await controller.fail(2)
    assert await moving(controller) == ((3, 1), (), ())
    leader, _, isr = await controller.state()
    assert (leader, set(isr)) == (3, {1, 3})


async def test_a_move_is_not_completed_onto_replicas_none_of_which_can_lead(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1,)})
    await reassign(controller, (2,))
    controller.active.context.shutting_down.add(2)
    await controller.change_isr((1, 2))
    assert await moving(controller) == ((2, 1), (2,), (1,))
    assert await controller.state() == (1, 1, (1, 2))
    await controller.fail(2)
    await controller.start(2)
    await controller.change_isr((1, 2))
    assert await moving(controller) == ((2,), (), ())


async def test_a_partition_without_a_leader_can_be_given_replicas_but_waits_for_them(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2,)})
    await controller.fail(2)
    former: State = await controller.state()
    assert former[0] == NO_LEADER
    assert await reassign(controller, (1,)) == ErrorCode.NONE
    assert await moving(controller) == ((1, 2), (1,), (2,))
    await controller.start(2)
    assert (await controller.state())[0] == 2
    await controller.change_isr((2, 1))
    assert await moving(controller) == ((1,), (), ())


async def test_what_the_store_holds_of_a_move_is_read_as_kafka_writes_it(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2)})
    await reassign(controller, (2, 3))
    assert await controller.assigned() == TopicNode(
        controller.topic("t").topic_id, {0: (2, 3, 1)}, {0: (3,)}, {0: (1,)}
    )


async def test_a_partition_that_was_never_led_is_led_by_the_brokers_it_moves_to(
    controller: ElectedController,
) -> None:
    await controller.write_topic({0: (5,)})
    await controller.active.topics_changed()
    assert controller.topic("t").leaderships == {}
    assert await reassign(controller, (3, 4)) == ErrorCode.NONE
    leader, _, isr = await controller.state()
    assert (leader, isr) == (3, (3, 4))
    assert await moving(controller) == ((3, 4), (), ())

"""Topics that are deleted while brokers or their disks are not there."""

from __future__ import annotations

import pytest
from support.elected import ElectedController

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.controller.channel.channel import UpdateMetadata
from odradek.controller.context import PartitionAndReplica
from odradek.controller.fenced_store import ControllerMoved
from odradek.controller.partitions.states import PartitionStatus, ReplicaStatus
from odradek.controller.topics.planning import TopicCreation
from odradek.controller.topics.topic_deletion import PARTITIONS_PER_STEP
from odradek.controller.topics.topic_nodes import remove_topic_nodes
from odradek.metadata_store import znodes

STARTED = ReplicaStatus.DELETION_STARTED
DONE = ReplicaStatus.DELETION_SUCCESSFUL
INELIGIBLE = ReplicaStatus.DELETION_INELIGIBLE


async def delete(controller: ElectedController, name: str = "t") -> None:
    topic_id = controller.topic(name).topic_id
    assert await controller.topics.delete([topic_id]) == {topic_id: None}
    await controller.settle()


def statuses(controller: ElectedController, name: str = "t") -> dict[int, ReplicaStatus]:
    """How the replicas of partition 0 stand, by broker."""
    topic = controller.topic(name)
    return {
        broker_id: controller.active.context.status(PartitionAndReplica(name, 0, broker_id))
        for broker_id in topic.assignment[0]
    }


async def is_gone(controller: ElectedController, name: str = "t") -> bool:
    """Whether neither the store nor the controller knows anything of a topic any more."""
    store = controller.store
    places = (znodes.TOPICS, znodes.DELETE_TOPICS, "/config/topics")
    left = [path for path in places if name in await store.children(path)]
    context = controller.active.context
    replicas = [each for each in context.replica_statuses if each.topic == name]
    return not left and not replicas and not context.has_name(name)


async def test_each_broker_deletes_its_replicas_and_then_the_topic_is_gone(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2), 1: (2, 3)})
    controller.channel.is_silent = True
    await delete(controller)
    assert statuses(controller) == {1: STARTED, 2: STARTED}
    assert controller.topic("t").status(1) is PartitionStatus.OFFLINE
    for broker_id, partitions in ((1, [0]), (2, [0, 1]), (3, [1])):
        assert controller.stopped(broker_id) == [("t", each, True) for each in partitions]
        assert not controller.channel.cache_of(broker_id).contains("t")
    assert not await is_gone(controller)
    controller.channel.answer_all()
    await controller.settle()
    assert await is_gone(controller)


async def test_a_log_that_was_not_there_is_deleted_as_well(controller: ElectedController) -> None:
    await controller.create("t", {0: (1, 2)})
    absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    controller.channel.refusals[TopicPartition("t", 0)] = absent
    await delete(controller)
    assert await is_gone(controller)


async def test_a_deletion_waits_for_a_broker_that_is_away_and_asks_nobody_twice(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2, 3)})
    await controller.fail(2)
    await delete(controller)
    assert statuses(controller) == {1: DONE, 2: INELIGIBLE, 3: DONE}
    assert controller.topic("t").deletion_waits
    controller.channel.sent.clear()
    await controller.start(2)
    assert await is_gone(controller)
    assert controller.stopped(2) == [("t", 0, True)]
    assert controller.channel.stop_replica(1, 3) == []
    assert controller.channel.leader_and_isr(2)[0].partition_states == ()


async def test_a_broker_that_dies_while_it_deletes_is_asked_again(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2, 3)})
    controller.channel.is_silent = True
    await delete(controller)
    await controller.fail(2)
    assert statuses(controller) == {1: STARTED, 2: INELIGIBLE, 3: STARTED}
    await controller.start(2)
    assert statuses(controller) == {1: STARTED, 2: STARTED, 3: STARTED}
    controller.channel.answer_all()
    await controller.settle()
    assert await is_gone(controller)


async def test_a_broker_that_restarts_while_it_deletes_is_asked_again(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2,)})
    controller.channel.is_silent = True
    await delete(controller)
    controller.channel.forget_unanswered()
    await controller.unregister(2)
    controller.channel.is_silent = False
    await controller.start(2)
    assert await is_gone(controller)


async def test_a_disk_that_cannot_delete_keeps_the_topic_until_its_broker_restarts(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2)})
    controller.channel.refusals[2, TopicPartition("t", 0)] = ErrorCode.KAFKA_STORAGE_ERROR
    await delete(controller)
    assert statuses(controller) == {1: DONE, 2: INELIGIBLE}
    assert await controller.store.children(znodes.DELETE_TOPICS) == ["t"]
    (refused,) = await controller.topics.create([TopicCreation("t", 1, 1)])
    assert refused.error is not None
    assert refused.error.code is ErrorCode.TOPIC_ALREADY_EXISTS
    controller.channel.refusals.clear()
    await controller.unregister(2)
    await controller.start(2)
    assert await is_gone(controller)


@pytest.mark.parametrize("asked_first", [False, True])
async def test_a_disk_that_works_again_deletes_what_it_could_not(
    controller: ElectedController, asked_first: bool
) -> None:
    await controller.create("t", {0: (1, 2)})
    broken = TopicPartition("t", 0)
    controller.channel.refusals[2, broken] = ErrorCode.KAFKA_STORAGE_ERROR
    if asked_first:
        controller.active.context.offline_directories[2] = {broken}
    await delete(controller)
    assert statuses(controller) == {1: DONE, 2: INELIGIBLE}
    controller.channel.refusals.clear()
    note = znodes.encode_log_dir_event(2)
    await controller.store.create(znodes.LOG_DIR_EVENT_PREFIX, note, sequential=True)
    await controller.active.directories_changed()
    await controller.settle()
    assert await is_gone(controller)


async def test_the_next_controller_goes_on_with_a_deletion(controller: ElectedController) -> None:
    await controller.create("t", {0: (1, 2)})
    controller.channel.is_silent = True
    await delete(controller)
    await controller.elect(3)
    assert await is_gone(controller)
    assert controller.channel.leader_and_isr(1)[0].partition_states == ()
    assert not any(cache.contains("t") for cache in map(controller.channel.cache_of, (1, 2, 3)))


async def test_the_next_controller_waits_for_the_same_brokers(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2)})
    await controller.fail(2)
    await delete(controller)
    await controller.elect(3)
    assert statuses(controller) == {1: DONE, 2: INELIGIBLE}
    await controller.start(2)
    assert await is_gone(controller)


async def test_a_topic_marked_by_hand_is_deleted(controller: ElectedController) -> None:
    await controller.create("t", {0: (1, 2)})
    await controller.store.create(znodes.delete_topic_path("t"))
    await controller.active.topics_changed()
    await controller.settle()
    assert await is_gone(controller)


async def test_the_mark_of_a_topic_that_there_is_not_is_taken_away(
    controller: ElectedController,
) -> None:
    await controller.store.create(znodes.delete_topic_path("never-was"))
    await controller.active.topics_changed()
    assert await controller.store.children(znodes.DELETE_TOPICS) == []
    assert controller.channel.sent == []


async def test_a_topic_on_its_way_is_deleted_wherever_it_is(controller: ElectedController) -> None:
    await controller.create("t", {0: (1,)})
    await controller.leaders.reassign({TopicPartition("t", 0): (2, 3)})
    await controller.settle()
    await delete(controller)
    assert await is_gone(controller)
    for broker_id in (1, 2, 3):
        assert ("t", 0, True) in controller.stopped(broker_id)
    assert await controller.leaders.reassignments(None) == {}


async def test_a_topic_that_was_never_led_is_deleted(controller: ElectedController) -> None:
    await controller.write_topic({0: (9,), 1: (1,)})
    await controller.active.topics_changed()
    await delete(controller)
    assert statuses(controller) == {9: INELIGIBLE}
    await controller.start(9)
    assert await is_gone(controller)


async def test_a_topic_being_deleted_takes_no_part_in_anything_else(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3)})
    await controller.create("u", {0: (2, 3)})
    controller.channel.is_silent = True
    await delete(controller)
    node = await controller.node()
    controller.channel.sent.clear()
    await controller.fail(2)
    await controller.change_isr((3,), "u")
    assert await controller.node() == node
    assert controller.led(3, "t") == []
    assert controller.reported(3, "t") is None


async def test_a_controller_that_was_replaced_removes_nothing_of_a_topic_made_anew(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1,)})
    former = controller.active.store
    await controller.elect(2)
    await delete(controller)
    made_anew = await controller.create("t", {0: (3,)})
    with pytest.raises(ControllerMoved):
        await remove_topic_nodes(former, "t", controller.active.keep_pace)
    assert (await controller.assigned()).topic_id == made_anew.topic_id
    assert await controller.state() == (3, 0, (3,))


async def test_topics_that_are_deleted_together_are_few_requests(
    controller: ElectedController,
) -> None:
    names = [f"t{number}" for number in range(3 * PARTITIONS_PER_STEP)]
    for name in names:
        await controller.create(name, {0: (1, 2)})
    controller.channel.sent.clear()
    topic_ids = [controller.topic(name).topic_id for name in names]
    assert await controller.topics.delete(topic_ids) == dict.fromkeys(topic_ids)
    await controller.settle()
    assert [await is_gone(controller, name) for name in names] == [True] * len(names)
    to_broker = [request for broker_id, request in controller.channel.sent if broker_id == 1]
    assert len([each for each in to_broker if isinstance(each, UpdateMetadata)]) <= 4
    assert sorted(controller.stopped(1)) == sorted((name, 0, True) for name in names)

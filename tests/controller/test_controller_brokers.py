"""Brokers that fail, come, come back and restart, and disks that fail, seen by the controller."""

from __future__ import annotations

import pytest
from support.cluster import Cluster
from support.elected import ElectedController, State, elected_controller

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import LeaderAndIsr
from odradek.common.sentinels import NO_LEADER
from odradek.common.topic_partition import TopicPartition
from odradek.controller.context import PartitionAndReplica
from odradek.controller.partitions.states import PartitionStatus, ReplicaStatus
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata_store import znodes

UNCLEAN = {"unclean.leader.election.enable": "true"}
CLEAN = {"unclean.leader.election.enable": "false"}


# -- a broker fails ------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "isr", "failed", "left"),
    [
        # The leader fails: the next of the assignment that is in sync leads.
        ((2, 3, 1), (2, 3, 1), (2,), (3, 1, (3, 1))),
        ((2, 3, 1), (2, 1), (2,), (1, 1, (1,))),
        # A follower fails: it leaves the ISR, in the next leader epoch.
        ((1, 2, 3), (1, 2, 3), (3,), (1, 1, (1, 2))),
        # One out of sync fails: nothing changes.
        ((1, 2, 3), (1, 2), (3,), (1, 0, (1, 2))),
        # Leader and follower fail together: one election, and the ISR is what lives.
        ((2, 3, 1), (2, 3, 1), (2, 3), (1, 1, (1,))),
        # The last in sync fails: it stays in the ISR, since only it has everything.
        ((2,), (2,), (2,), (NO_LEADER, 1, (2,))),
        ((2, 1), (2,), (2,), (NO_LEADER, 1, (2,))),
        ((2, 3), (2, 3), (2, 3), (NO_LEADER, 2, (3,))),
    ],
)
async def test_a_failed_broker_leads_nothing_and_is_in_no_isr(
    controller: ElectedController,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    failed: tuple[int, ...],
    left: State,
) -> None:
    await controller.create("t", {0: replicas})
    if isr != replicas:
        await controller.change_isr(isr)
    await controller.fail(*failed)
    assert await controller.state() == left


async def test_the_remaining_replicas_are_told_of_the_election_and_everyone_of_the_failure(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 1), 1: (1, 3)})
    await controller.fail(2)
    assert [request for request in controller.channel.sent if request[0] == 2] == []
    (led,) = controller.led(1)
    assert (led.leader, led.leader_epoch, led.isr, led.replicas) == (1, 1, (1,), (2, 1))
    assert not led.is_new
    assert controller.led(3) == []
    for broker_id in (1, 3):
        reported = controller.reported(broker_id)
        assert reported is not None
        assert (reported.leader, reported.offline_replicas) == (1, (2,))
        cache = controller.channel.cache_of(broker_id)
        assert sorted(cache.snapshot.alive_brokers) == [1, 3]


async def test_a_failure_elects_from_the_isr_that_the_store_holds(
    controller: ElectedController,
) -> None:
    """The leader took a follower into the ISR and died; no note of it has come yet."""
    await controller.create("t", {0: (2, 3)})
    await controller.change_isr((2,))
    await controller.write_isr((2, 3))
    await controller.fail(2)
    assert await controller.state() == (3, 1, (3,))


async def test_a_follower_leaves_an_isr_that_the_controller_did_not_know_it_was_in(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 3)})
    await controller.change_isr((1,))
    await controller.write_isr((1, 3))
    await controller.fail(3)
    assert await controller.state() == (1, 1, (1,))


@pytest.mark.parametrize(
    ("of_broker", "of_topic", "elected"),
    [
        ("false", {}, False),
        ("true", {}, True),
        ("false", UNCLEAN, True),
        ("true", CLEAN, False),
    ],
)
async def test_a_replica_out_of_sync_leads_only_where_that_is_configured(
    cluster: Cluster, of_broker: str, of_topic: dict[str, str], elected: bool
) -> None:
    cluster.configure(unclean_leader_election_enable=of_broker)
    async with elected_controller(cluster) as controller:
        await controller.create("t", {0: (2, 3)}, of_topic)
        await controller.change_isr((2,))
        await controller.fail(2)
        state = await controller.state()
        assert state == ((3, 1, (3,)) if elected else (NO_LEADER, 1, (2,)))


async def test_a_setting_altered_later_counts_and_elects_at_once(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3)})
    await controller.change_isr((2,))
    await controller.fail(2)
    assert await controller.state() == (NO_LEADER, 1, (2,))
    path = znodes.topic_config_path("t")
    await controller.store.set(path, znodes.encode_config(UNCLEAN))
    await controller.active.topic_config_changed("t")
    assert await controller.state() == (3, 2, (3,))
    assert controller.led(3)[-1].leader == 3
    await controller.active.topic_config_changed("no such topic")


# -- a broker comes ------------------------------------------------------------


async def test_a_broker_that_comes_back_leads_what_nobody_else_could(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 1), 1: (2, 3)})
    await controller.change_isr((2,))
    await controller.fail(2)
    await controller.start(2)
    assert await controller.state() == (2, 2, (2,))
    assert await controller.state("t", 1) == (3, 1, (3,))  # what others lead it follows
    assert controller.led(2)[-1].leader == 2
    assert controller.led(2, "t", 1)[-1].leader == 3


async def test_a_broker_that_comes_is_told_everything_and_the_others_of_it(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 1), 1: (1, 3), 2: (3, 2)})
    await controller.fail(2)
    controller.channel.sent.clear()
    await controller.start(2)
    first, *_ = controller.channel.update_metadata(2)
    assert first.is_full
    assert [state.partition for state in first.partition_states] == [0, 1, 2]
    (led,) = [each for each in controller.channel.leader_and_isr(2) if each.is_full]
    assert [state.partition for state in led.partition_states] == [0, 2]
    assert {request.broker_epoch for _, request in controller.channel.sent if _ == 2} == {
        controller.broker(2).epoch
    }
    for broker_id in (1, 3):
        cache = controller.channel.cache_of(broker_id)
        assert sorted(cache.snapshot.alive_brokers) == [1, 2, 3]


async def test_full_updates_take_away_what_a_broker_missed(controller: ElectedController) -> None:
    await controller.create("kept", {0: (1, 2)})
    await controller.create("gone", {0: (1,)})
    await controller.fail(2)
    gone = controller.topic("gone").topic_id
    assert await controller.topics.delete([gone]) == {gone: None}
    await controller.settle()
    missed = controller.channel.cache_of(2)
    assert missed.contains("gone")
    await controller.start(2)
    assert missed.get_all_topics() == {"kept"}


async def test_a_restart_between_two_looks_is_a_failure_and_a_start(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3), 1: (3, 2)})
    former = controller.broker(2).epoch
    await controller.unregister(2)
    await controller.start(2)
    assert controller.broker(2).epoch > former
    assert await controller.state() == (3, 1, (3,))
    assert await controller.state("t", 1) == (3, 1, (3,))
    assert [state.leader for state in controller.led(2)] == [3]
    assert controller.channel.update_metadata(2)[0].is_full


async def test_what_a_broker_says_of_its_former_life_is_void(
    controller: ElectedController,
) -> None:
    controller.channel.is_silent = True
    controller.channel.refusals[2, TopicPartition("t", 0)] = ErrorCode.KAFKA_STORAGE_ERROR
    await controller.create("t", {0: (2, 3)})
    controller.channel.refusals.clear()
    await controller.unregister(2)
    await controller.start(2)
    controller.channel.answer_all()
    await controller.settle()
    assert controller.active.context.offline_directories.get(2, set()) == set()
    assert controller.active.context.status(PartitionAndReplica("t", 0, 2)) is ReplicaStatus.ONLINE


async def test_a_broker_that_moved_is_told_of_to_everyone(controller: ElectedController) -> None:
    moved = controller.broker(2)._replace(rack="r2", epoch=-1)
    path = znodes.broker_path(2)
    await controller.sessions[2].set(path, znodes.encode_broker(moved, 0))
    await controller.notice_brokers()
    assert controller.broker(2).rack == "r2"
    for broker_id in (1, 2, 3):
        snapshot = controller.channel.cache_of(broker_id).snapshot
        assert snapshot.alive_brokers[2].rack == "r2"
    assert controller.channel.leader_and_isr() == []


async def test_a_partition_none_of_whose_replicas_is_there_is_led_when_one_comes(
    controller: ElectedController,
) -> None:
    await controller.write_topic({0: (4, 5)})
    await controller.active.topics_changed()
    assert controller.topic("t").status(0) is PartitionStatus.NEW
    await controller.start(5)
    assert await controller.state() == (5, 0, (5,))
    assert [state.is_new for state in controller.led(5)] == [True]
    await controller.start(4)
    assert await controller.state() == (5, 0, (5,))
    assert controller.led(4)[-1].replicas == (4, 5)


# -- a new controller ------------------------------------------------------------


async def test_a_new_controller_replaces_leaders_and_shrinks_isrs_of_the_dead(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3, 1), 1: (3, 2, 1)})
    await controller.create("alone", {0: (2,)})
    await controller.unregister(2)
    await controller.elect(3)
    assert await controller.state() == (3, 1, (3, 1))
    assert await controller.state("t", 1) == (3, 1, (3, 1))
    assert await controller.state("alone") == (NO_LEADER, 1, (2,))
    assert controller.active.context.epoch == 2
    assert {request.controller_epoch for _, request in controller.channel.sent} == {2}


async def test_a_new_controller_tells_everyone_everything_in_one_request(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3), 1: (3, 2), 2: (1, 2)})
    await controller.elect(1)
    for broker_id, partitions in ((1, [2]), (2, [0, 1, 2]), (3, [0, 1])):
        (led,) = controller.channel.leader_and_isr(broker_id)
        assert led.is_full
        assert sorted(state.partition for state in led.partition_states) == partitions
        alone, everything = controller.channel.update_metadata(broker_id)
        assert (alone.partition_states, alone.is_full) == ((), False)
        assert everything.is_full
        assert len(everything.partition_states) == 3


async def test_partitions_that_were_never_led_are_led_by_the_next_controller(
    controller: ElectedController,
) -> None:
    await controller.write_topic({0: (2, 3)})
    await controller.elect(1)
    assert await controller.state() == (2, 0, (2, 3))
    assert all(state.is_new for state in controller.led(2))


async def test_a_topic_that_others_made_is_led(controller: ElectedController) -> None:
    await controller.write_topic({0: (2, 3)})
    await controller.active.topics_changed()
    assert await controller.state() == (2, 0, (2, 3))
    reported = controller.reported(1)
    assert reported is not None
    assert reported.topic_id == b"n" * 16


async def test_corrupt_nodes_are_left_alone_and_named(
    controller: ElectedController, caplog: pytest.LogCaptureFixture
) -> None:
    await controller.create("good", {0: (1,)})
    await controller.create("bad", {0: (1,)})
    await controller.create("worse", {0: (1,), 1: (1,)})
    store = controller.store
    await store.set(znodes.topic_path("bad"), b"\xff{")
    await store.set(znodes.partition_state_path("worse", 1), b"[]")
    await store.create(f"{znodes.ISR_CHANGES}/isr_change_", b"7", sequential=True)
    await store.create(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_", b"{}", sequential=True)
    await controller.elect(1)
    assert sorted(topic.name for topic in controller.active.context.topics()) == ["good", "worse"]
    assert list(controller.topic("worse").leaderships) == [0]
    assert await controller.state("good") == (1, 0, (1,))
    for what in ("'bad'", "worse-1", znodes.ISR_CHANGES, znodes.LOG_DIR_EVENTS):
        assert what in caplog.text
    (refused,) = await controller.topics.create([TopicCreation("bad", assignments=[(0, [1])])])
    assert refused.error is not None
    assert refused.error.code is ErrorCode.TOPIC_ALREADY_EXISTS


# -- ISR changes ------------------------------------------------------------


async def test_changes_of_the_isr_are_taken_up_told_to_everyone_and_their_notes_removed(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2), 1: (2, 3)})
    await controller.write_isr((2,), "t", 1)
    await controller.change_isr((1,))
    assert controller.topic("t").leaderships[0].isr == (1,)
    # Only what the note names is read.
    assert controller.topic("t").leaderships[1].isr == (2, 3)
    for broker_id in (1, 2, 3):
        (update,) = controller.channel.update_metadata(broker_id)
        assert [(state.partition, state.isr) for state in update.partition_states] == [(0, (1,))]
    assert controller.channel.leader_and_isr() == []
    assert await controller.store.children(znodes.ISR_CHANGES) == []


async def test_a_follower_that_was_taken_in_after_it_had_gone_leaves_the_isr_again(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (1, 2, 3)})
    await controller.change_isr((1, 3))
    await controller.fail(2)
    controller.channel.sent.clear()
    await controller.change_isr((1, 2, 3))
    assert await controller.state() == (1, 1, (1, 3))
    assert controller.led(1)[-1].isr == (1, 3)
    reported = controller.reported(3)
    assert reported is not None
    assert reported.isr == (1, 3)


async def test_a_leader_that_was_given_up_and_still_changed_the_isr_leaves_it_to_another(
    controller: ElectedController,
) -> None:
    """No election found anybody; then it took a follower in, whose note comes last."""
    await controller.create("t", {0: (2, 3)})
    await controller.change_isr((2,))
    await controller.fail(2)
    assert await controller.state() == (NO_LEADER, 1, (2,))
    path = znodes.partition_state_path("t", 0)
    zombie = LeaderAndIsr(1, 2, 1, (2, 3))
    await controller.store.set(path, znodes.encode_partition_state(zombie))
    note = znodes.encode_isr_change([TopicPartition("t", 0)])
    await controller.store.create(f"{znodes.ISR_CHANGES}/isr_change_", note, sequential=True)
    await controller.active.isr_changed()
    assert await controller.state() == (3, 3, (3,))
    assert controller.led(3)[-1].leader == 3


async def test_notes_of_what_is_not_there_are_only_removed(controller: ElectedController) -> None:
    await controller.create("t", {0: (1, 2)})
    note = znodes.encode_isr_change([TopicPartition("t", 7), TopicPartition("gone", 0)])
    await controller.store.create(f"{znodes.ISR_CHANGES}/isr_change_", note, sequential=True)
    await controller.active.isr_changed()
    assert controller.channel.sent == []
    assert await controller.store.children(znodes.ISR_CHANGES) == []


# -- log directories ------------------------------------------------------------


async def fail_disk(controller: ElectedController, broker_id: int, *partitions: int) -> None:
    """A log directory of a broker fails, with some of topic t in it; the broker leaves a note."""
    for partition in partitions:
        refused = (broker_id, TopicPartition("t", partition))
        controller.channel.refusals[refused] = ErrorCode.KAFKA_STORAGE_ERROR
    note = znodes.encode_log_dir_event(broker_id)
    await controller.store.create(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_", note, sequential=True)
    await controller.active.directories_changed()
    await controller.settle()


async def test_a_failed_disk_is_asked_for_and_its_partitions_get_other_leaders(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3), 1: (3, 2), 2: (2, 1), 3: (1, 3)})
    await fail_disk(controller, 2, 0, 1)
    requested = controller.channel.leader_and_isr(2)[0]
    assert sorted(state.partition for state in requested.partition_states) == [0, 1, 2]
    assert await controller.state("t", 0) == (3, 1, (3,))
    assert await controller.state("t", 1) == (3, 1, (3,))
    assert await controller.state("t", 2) == (2, 0, (2, 1))
    for partition in (0, 1):
        assert controller.reported(1, "t", partition).offline_replicas == (2,)  # type: ignore[union-attr]  # it was told
    assert await controller.store.children(znodes.LOG_DIR_EVENTS) == []


async def test_the_only_replica_on_a_failed_disk_leaves_the_partition_without_a_leader(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2,)})
    await fail_disk(controller, 2, 0)
    assert await controller.state() == (NO_LEADER, 1, (2,))
    assert controller.topic("t").status(0) is PartitionStatus.OFFLINE
    controller.channel.refusals.clear()
    await controller.unregister(2)
    await controller.start(2)  # a restart finds the disk well again
    assert await controller.state() == (2, 3, (2,))
    assert controller.led(2)[-1].leader == 2


async def test_a_disk_that_works_again_has_its_replicas_back(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2,)})
    await fail_disk(controller, 2, 0)
    assert await controller.state() == (NO_LEADER, 1, (2,))
    controller.channel.refusals.clear()
    await fail_disk(controller, 2)
    assert await controller.state() == (2, 2, (2,))
    assert controller.reported(1).offline_replicas == ()  # type: ignore[union-attr]  # it was told


async def test_a_disk_that_failed_only_between_two_answers_is_not_failed(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2,)})
    controller.channel.refusals[2, TopicPartition("t", 0)] = ErrorCode.KAFKA_STORAGE_ERROR
    note = znodes.encode_log_dir_event(2)
    await controller.store.create(znodes.LOG_DIR_EVENT_PREFIX, note, sequential=True)
    await controller.active.directories_changed()  # its answer has not been looked at yet
    controller.channel.refusals.clear()
    await fail_disk(controller, 2)
    assert (await controller.state())[0] == 2
    assert controller.active.context.offline_directories[2] == set()


async def test_a_disk_is_not_found_failed_twice(
    controller: ElectedController, caplog: pytest.LogCaptureFixture
) -> None:
    await controller.create("t", {0: (2, 3)})
    await fail_disk(controller, 2, 0)
    controller.channel.sent.clear()
    caplog.clear()
    await fail_disk(controller, 2, 0)
    assert await controller.state() == (3, 1, (3,))
    assert controller.channel.leader_and_isr(3) == []
    assert "directory of" not in caplog.text


async def test_a_replica_on_a_failed_disk_is_elected_by_nobody(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (3, 2)}, UNCLEAN)
    await fail_disk(controller, 2, 0)
    await controller.fail(3)
    assert (await controller.state())[0] == NO_LEADER


async def test_a_note_of_a_broker_that_is_gone_is_only_removed(
    controller: ElectedController,
) -> None:
    await controller.create("t", {0: (2, 3)})
    await fail_disk(controller, 9)
    assert controller.channel.sent == []
    assert await controller.store.children(znodes.LOG_DIR_EVENTS) == []

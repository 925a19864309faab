"""The controller's shell: elections and their fence, sessions that end, answers that are lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest
import trio
from support.cluster import Cluster
from trio.testing import MockClock

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.partition_state import LeaderAndIsr
from odradek.common.topic_partition import TopicPartition
from odradek.controller.context import ControllerContext
from odradek.controller.controller import Controller
from odradek.controller.partitions.leader_elections import ElectionType
from odradek.controller.topics.planning import NewPartitions, TopicCreation
from odradek.controller.topics.topic_nodes import read_topics
from odradek.metadata_store import znodes
from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import StoreUnreachable
from odradek.metadata_store.store import MetadataStore, SessionState
from odradek.runtime.long_work import Pace

NOTICED_SECONDS = 1
"""Longer than it takes a watch to tell and an event to be done; of a clock that jumps."""


@pytest.fixture
async def reader(cluster: Cluster) -> AsyncIterator[EmbeddedStore]:
    async with cluster.store() as store:
        yield store


async def elected(store: MetadataStore) -> tuple[int, int]:
    """The controller's broker id and epoch."""
    node = await store.get(znodes.CONTROLLER)
    epoch = await store.get(znodes.CONTROLLER_EPOCH)
    return znodes.decode_controller(node.data), int(epoch.data)


async def create(controller: Controller, name: str, **target: object) -> ErrorCode:
    requested = TopicCreation(name, assignments=target.get("assignments", [(0, [1, 2])]))  # type: ignore[arg-type]  # as given
    (outcome,) = await controller.create_topics([requested])
    return ErrorCode.NONE if outcome.error is None else outcome.error.code


# -- elections ------------------------------------------------------------


async def test_one_of_several_brokers_is_the_controller_and_all_know_who(
    cluster: Cluster, reader: EmbeddedStore, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as first, cluster.running(2) as second:
        await trio.sleep(NOTICED_SECONDS)
        assert (first.is_active, second.is_active) == (True, False)
        assert await elected(reader) == (1, 1)
        for broker_id in (1, 2):
            cache = cluster.channels[1].cache_of(broker_id)
            assert cache.controller_id == 1
            assert sorted(cache.snapshot.alive_brokers) == [1, 2]


async def test_a_controller_that_goes_is_followed_by_another_in_the_next_epoch(
    cluster: Cluster, reader: EmbeddedStore, autojump_clock: MockClock
) -> None:
    async with cluster.running(2) as second, cluster.running(3) as third:
        await trio.sleep(NOTICED_SECONDS)
        assert await create(second, "t", assignments=[(0, [2, 3])]) is ErrorCode.NONE
        await second.stop()
        await cluster.stores[2].close()
        await trio.sleep(NOTICED_SECONDS)
        assert third.is_active
        assert await elected(reader) == (3, 2)
        node = await reader.get(znodes.partition_state_path("t", 0))
        state = znodes.decode_partition_state(node.data)
        assert (state.controller_epoch, state.leader, state.isr) == (2, 3, (3,))


async def test_what_a_replaced_controller_still_writes_is_refused_and_it_resigns(
    cluster: Cluster, reader: EmbeddedStore, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as first, cluster.running(2) as second:
        await trio.sleep(NOTICED_SECONDS)
        store_answers = cluster.stores[1].hold()
        codes: list[ErrorCode] = []

        async def create_too_late() -> None:
            try:
                codes.append(await create(first, "late"))
            except KafkaError as refusal:
                codes.append(refusal.code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(create_too_late)
            await trio.testing.wait_all_tasks_blocked()
            await reader.delete(znodes.CONTROLLER)
            await trio.sleep(NOTICED_SECONDS)
            assert second.is_active
            assert first.is_active  # it does not know yet
            store_answers.set()
        assert codes == [ErrorCode.NOT_CONTROLLER]
        assert not first.is_active
        assert await reader.children(znodes.TOPICS) == []
        assert cluster.channels[1].brokers == {}
        await trio.sleep(NOTICED_SECONDS)
        assert await elected(reader) == (2, 2)
        assert await create(second, "in-time") is ErrorCode.NONE


async def test_verbs_of_a_broker_that_is_not_the_controller_say_so(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running(1), cluster.running(2) as other:
        verbs: list[Callable[[], Awaitable[object]]] = [
            lambda: other.create_topics([TopicCreation("t", 1, 1)]),
            lambda: other.ensure_topics(["t"]),
            lambda: other.delete_topics([b"t" * 16]),
            lambda: other.create_partitions([NewPartitions("t", 2)]),
            lambda: other.elect_leaders(ElectionType.PREFERRED, None),
            lambda: other.reassign({TopicPartition("t", 0): (1,)}),
            lambda: other.reassignments(None),
            lambda: other.shut_down_broker(1, -1),
        ]
        for verb in verbs:
            with pytest.raises(KafkaError) as refusal:
                await verb()
            assert refusal.value.code is ErrorCode.NOT_CONTROLLER


# -- what watches tell ------------------------------------------------------------


async def test_every_kind_of_change_in_the_store_is_noticed(
    cluster: Cluster, reader: EmbeddedStore, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as controller:
        context = controller.active.context
        async with cluster.store() as other:
            await cluster.register(other, 2)
            await trio.sleep(NOTICED_SECONDS)
            assert context.live_broker_ids == [1, 2]
            assert await create(controller, "t") is ErrorCode.NONE
            path = znodes.partition_state_path("t", 0)
            node = znodes.decode_partition_state((await reader.get(path)).data)
            await reader.set(path, znodes.encode_partition_state(node._replace(isr=(1,))))
            note = znodes.encode_isr_change([TopicPartition("t", 0)])
            await reader.create(f"{znodes.ISR_CHANGES}/isr_change_", note, sequential=True)
            await trio.sleep(NOTICED_SECONDS)
            assert cluster.channel.cache.get_partition_info("t", 0).isr == (1,)  # type: ignore[union-attr]  # it is told
            cluster.channel.sent.clear()
            note = znodes.encode_log_dir_event(2)
            await reader.create(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_", note, sequential=True)
            await trio.sleep(NOTICED_SECONDS)
            assert len(cluster.channel.leader_and_isr(2)) == 1
        await trio.sleep(NOTICED_SECONDS)
        assert context.live_broker_ids == [1]
        await reader.create(znodes.delete_topic_path("t"))
        await trio.sleep(NOTICED_SECONDS)
        topic = context.any_topic("t")
        assert topic is not None
        assert topic.is_being_deleted


# -- sessions ------------------------------------------------------------


async def test_a_broker_whose_session_expired_registers_again_and_stands_again(
    cluster: Cluster, reader: EmbeddedStore, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as first:
        assert await create(first, "t", assignments=[(0, [1])]) is ErrorCode.NONE
        former = first.broker_epoch
        cluster.let_others_time_out(reader)
        assert await reader.children(znodes.BROKER_IDS) == []
        await trio.sleep(NOTICED_SECONDS)
        assert cluster.stores[1].session_state is SessionState.CONNECTED
        assert await reader.children(znodes.BROKER_IDS) == ["1"]
        assert first.broker_epoch > former
        assert first.is_active
        assert await elected(reader) == (1, 2)
        assert await create(first, "u", assignments=[(0, [1])]) is ErrorCode.NONE


async def test_while_one_session_was_expired_another_broker_became_the_controller(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as first, cluster.running(2) as second:
        await trio.sleep(NOTICED_SECONDS)
        assert await create(first, "t") is ErrorCode.NONE
        store_answers = cluster.stores[1].hold()  # the first does not get to anything
        cluster.let_others_time_out(cluster.stores[2])
        await trio.sleep(NOTICED_SECONDS)
        assert second.is_active
        store_answers.set()
        await trio.sleep(NOTICED_SECONDS)
        assert not first.is_active
        assert await elected(cluster.stores[2]) == (2, 2)
        assert sorted(second.active.context.live_brokers) == [1, 2]
        cache = cluster.channels[2].cache_of(1)
        assert cache.controller_id == 2
        assert cache.contains("t")


async def test_a_broker_whose_id_was_taken_meanwhile_keeps_asking_for_it(
    cluster: Cluster,
    reader: EmbeddedStore,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: MockClock,
) -> None:
    async with cluster.running(1) as first:
        cluster.let_others_time_out(reader)
        async with cluster.store() as impostor:
            await cluster.register(impostor, 1)
            await trio.sleep(NOTICED_SECONDS)
            assert not first.is_active
            assert "broker.id=1" in caplog.text
        await trio.sleep(NOTICED_SECONDS)
        assert first.is_active
        assert await reader.children(znodes.BROKER_IDS) == ["1"]


# -- answers that are lost ------------------------------------------------------------


async def assert_knows_what_the_store_holds(
    context: ControllerContext, store: MetadataStore
) -> None:
    topics = {topic.name: topic for topic in await read_topics(store, Pace().keep)}
    assert {topic.name for topic in context.topics()} == set(topics)
    for topic in context.topics():
        held = topics[topic.name]
        assert (topic.topic_id, topic.assignment) == (held.topic_id, held.assignment)
        assert topic.version == held.version
        assert topic.reassignments == held.reassignments
        assert topic.leaderships == held.leaderships
        assert topic.is_being_deleted == held.is_being_deleted


T0 = TopicPartition("t", 0)

VERBS: dict[str, Callable[[Controller], Awaitable[object]]] = {
    "create": lambda controller: create(controller, "new"),
    "delete": lambda controller: controller.delete_topics(
        [controller.active.context.topic("t").topic_id]  # type: ignore[union-attr]  # it is there
    ),
    "grow": lambda controller: controller.create_partitions([NewPartitions("t", 3)]),
    "reassign": lambda controller: controller.reassign({T0: (2,)}),
    "elect": lambda controller: controller.elect_leaders(ElectionType.PREFERRED, [T0]),
    "shut down": lambda controller: controller.shut_down_broker(2, -1),
}


@pytest.mark.parametrize("verb", VERBS)
async def test_after_a_lost_answer_everything_is_read_again(
    cluster: Cluster, reader: EmbeddedStore, verb: str, autojump_clock: MockClock
) -> None:
    """At each write of each verb: it was done, and the controller cannot know."""
    lost = 0
    while True:
        path = cluster.path.with_name(f"{lost}.sqlite")
        other = Cluster(cluster.path.parent)
        other.path = path
        async with other.store() as others, other.running(1) as controller:
            await other.register(others, 2)
            await trio.sleep(NOTICED_SECONDS)
            assert await create(controller, "t") is ErrorCode.NONE
            if verb == "elect":
                await lead_by_2(others)
                await trio.sleep(NOTICED_SECONDS)
            store = other.stores[1]
            before = store.writes
            store.answers = lost
            with suppress(KafkaError, StoreUnreachable):
                await VERBS[verb](controller)
            await trio.sleep(NOTICED_SECONDS)
            await assert_knows_what_the_store_holds(controller.active.context, store)
            was_lost = store.answers is None
            writes = store.writes - before
        if not was_lost:
            break
        lost += 1
    assert 1 <= lost <= writes


async def lead_by_2(store: MetadataStore) -> None:
    """Let broker 2 lead t-0, so that there is somebody else to prefer."""
    await store.delete(znodes.CONTROLLER)
    path = znodes.partition_state_path("t", 0)
    await store.set(path, znodes.encode_partition_state(LeaderAndIsr(1, 2, 1, (1, 2))))


async def test_what_the_store_did_not_answer_is_refused_and_may_be_asked_again(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as controller:
        cluster.stores[1].answers = 0
        assert await create(controller, "t", assignments=[(0, [1])]) is ErrorCode.NOT_CONTROLLER
        await trio.sleep(NOTICED_SECONDS)
        # It was made after all, and is led by now.
        assert await create(controller, "t", assignments=[(0, [1])]) is (
            ErrorCode.TOPIC_ALREADY_EXISTS
        )
        assert cluster.channel.cache.partition_count("t") == 1


# -- events ------------------------------------------------------------


async def test_an_event_that_fails_is_logged_and_everything_read_again(
    cluster: Cluster,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: MockClock,
) -> None:
    async with cluster.running(1) as controller:
        failed = controller.active

        async def fail(_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(failed.brokers, "registrations_changed", fail)
        async with cluster.store() as other:
            await cluster.register(other, 2)
            await trio.sleep(NOTICED_SECONDS)
            assert "a bug" in caplog.text
            assert controller.is_active
            assert controller.active is not failed
            assert controller.active.context.live_broker_ids == [1, 2]


async def test_leaders_are_given_back_when_the_clock_says_so(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.store() as others, cluster.running(1) as controller:
        await cluster.register(others, 2)
        await trio.sleep(NOTICED_SECONDS)
        assert await create(controller, "t") is ErrorCode.NONE
        await controller.shut_down_broker(1, -1)
        controller.active.context.shutting_down.clear()
        path = znodes.partition_state_path("t", 0)
        await others.set(path, znodes.encode_partition_state(LeaderAndIsr(1, 2, 1, (2, 1))))
        note = znodes.encode_isr_change([T0])
        await others.create(f"{znodes.ISR_CHANGES}/isr_change_", note, sequential=True)
        await trio.sleep(NOTICED_SECONDS)
        controller.rebalance_leaders()
        await trio.sleep(NOTICED_SECONDS)
        node = await others.get(path)
        assert znodes.decode_partition_state(node.data).leader == 1


async def test_altered_settings_of_a_topic_become_known(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as controller, cluster.store() as other:
        assert await create(controller, "t", assignments=[(0, [1])]) is ErrorCode.NONE
        altered = {"retention.ms": "5"}
        await other.set(znodes.topic_config_path("t"), znodes.encode_config(altered))
        controller.topic_config_changed("t", altered)
        await trio.sleep(NOTICED_SECONDS)
        topic = controller.active.context.topic("t")
        assert topic is not None
        assert topic.config == altered


async def test_a_stop_lets_what_has_begun_come_to_its_end(
    cluster: Cluster, reader: EmbeddedStore, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as controller:
        store_answers = cluster.stores[1].hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(create_and_expect_none, controller)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(controller.stop)
            await trio.testing.wait_all_tasks_blocked()
            store_answers.set()
        assert await reader.children(znodes.TOPICS) == ["t"]
        assert not controller.is_active


async def create_and_expect_none(controller: Controller) -> None:
    assert await create(controller, "t", assignments=[(0, [1])]) is ErrorCode.NONE


async def test_an_election_that_loses_an_answer_is_held_again(
    cluster: Cluster, reader: EmbeddedStore, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as controller:
        async with cluster.store() as other:
            await cluster.register(other, 2)
            await trio.sleep(NOTICED_SECONDS)
            assert await create(controller, "t", assignments=[(0, [2, 1])]) is ErrorCode.NONE
            assert await create(controller, "going", assignments=[(0, [1])]) is ErrorCode.NONE
            await reader.create(znodes.delete_topic_path("going"))
        store = cluster.stores[1]
        for lost in range(4):
            store.answers = lost
            await reader.delete(znodes.CONTROLLER)
            await trio.sleep(NOTICED_SECONDS)
            assert controller.is_active
            await assert_knows_what_the_store_holds(controller.active.context, store)
        assert [topic.name for topic in controller.active.context.topics()] == ["t"]


async def test_former_terms_leave_no_watches_behind(
    cluster: Cluster, reader: EmbeddedStore, autojump_clock: MockClock
) -> None:
    async with cluster.running(1) as controller:
        await trio.sleep(NOTICED_SECONDS)
        watches = cluster.stores[1].watch_count
        for _ in range(3):
            await reader.delete(znodes.CONTROLLER)
            await trio.sleep(NOTICED_SECONDS)
        assert controller.active.context.epoch == 4
        assert cluster.stores[1].watch_count == watches

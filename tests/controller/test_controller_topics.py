"""The controller's verbs over a real store: what it writes, tells, and answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from support.cluster import Cluster, live_broker

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.live_broker import LiveBroker
from odradek.common.partition_state import LEADER_DURING_DELETE, StoppedReplica
from odradek.common.topic_partition import TopicPartition
from odradek.controller.controller import Controller
from odradek.controller.topics.planning import NewPartitions, TopicCreation
from odradek.metadata_store import znodes
from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import NoNode


@pytest.fixture
async def controller(cluster: Cluster) -> AsyncIterator[Controller]:
    async with cluster.running() as controller:
        cluster.channel.sent.clear()
        yield controller


@pytest.fixture
async def reader(cluster: Cluster) -> AsyncIterator[EmbeddedStore]:
    async with cluster.store() as store:
        yield store


async def create(controller: Controller, *targets: TopicCreation) -> list[ErrorCode]:
    outcomes = await controller.create_topics(targets)
    return [outcome.error.code if outcome.error else ErrorCode.NONE for outcome in outcomes]


def topic_id(controller: Controller, name: str) -> bytes:
    topic = controller.active.context.topic(name)
    assert topic is not None
    return topic.topic_id


# -- creation ------------------------------------------------------------


async def test_a_topic_is_written_as_kafka_writes_it(
    controller: Controller, reader: EmbeddedStore
) -> None:
    (created,) = await controller.create_topics(
        [TopicCreation("orders", 2, 1, configs=[("retention.ms", "5000")])]
    )
    assert created.error is None
    assert created.plan is not None
    topic = znodes.decode_topic((await reader.get("/brokers/topics/orders")).data)
    assert topic.assignment == {0: (1,), 1: (1,)}
    assert topic.topic_id == created.plan.topic_id
    assert (await reader.get("/config/topics/orders")).data == (
        b'{"version":1,"config":{"retention.ms":"5000"}}'
    )
    for partition in "01":
        state = await reader.get(f"/brokers/topics/orders/partitions/{partition}/state")
        assert state.data == (
            b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}'
        )


async def test_replicas_lead_before_clients_are_told(
    cluster: Cluster, controller: Controller
) -> None:
    await create(controller, TopicCreation("orders", 2, 1, configs=[("retention.ms", "5000")]))
    (_, first), (_, second) = cluster.channel.sent
    assert first == cluster.channel.leader_and_isr()[0]
    assert second == cluster.channel.update_metadata()[0]
    for request in (first, second):
        assert (request.controller_id, request.controller_epoch) == (1, 1)
        states = request.partition_states
        assert [state.topic_partition for state in states] == [
            TopicPartition("orders", 0),
            TopicPartition("orders", 1),
        ]
        assert {(s.leader, s.leader_epoch, s.isr, s.replicas) for s in states} == {
            (1, 0, (1,), (1,))
        }
        assert {s.partition_epoch for s in states} == {0}
        assert all(s.config == {"retention.ms": "5000"} for s in states)
        assert {s.topic_id for s in states} == {topic_id(controller, "orders")}
    # Replicas are told that they begin empty; clients need not know.
    assert all(state.is_new for state in first.partition_states)
    assert not any(state.is_new for state in second.partition_states)
    assert cluster.channel.cache.partition_count("orders") == 2


async def test_topics_of_one_request_fare_each_on_its_own_and_are_told_at_once(
    cluster: Cluster, controller: Controller
) -> None:
    await create(controller, TopicCreation("there", 1, 1))
    cluster.channel.sent.clear()
    codes = await create(
        controller,
        TopicCreation("a", 1, 1),
        TopicCreation("there", 1, 1),
        TopicCreation("b", 1, 7),
        TopicCreation("c", 1, 1, configs=[("nope", "1")]),
        TopicCreation("d", 1, 1),
    )
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.NONE,
    ]
    (reported,) = cluster.channel.leader_and_isr()
    assert [state.topic for state in reported.partition_states] == ["a", "d"]


async def test_names_that_differ_in_dots_only_collide(controller: Controller) -> None:
    await create(controller, TopicCreation("a.b_c", 1, 1))
    assert await create(controller, TopicCreation("a_b.c", 1, 1)) == [
        ErrorCode.INVALID_TOPIC_EXCEPTION
    ]


async def test_validate_only_makes_nothing(
    cluster: Cluster, controller: Controller, reader: EmbeddedStore
) -> None:
    (outcome,) = await controller.create_topics([TopicCreation("t", 3, 1)], validate_only=True)
    assert outcome.plan is not None
    assert len(outcome.plan.assignment) == 3
    assert await reader.children("/brokers/topics") == []
    assert cluster.channel.sent == []
    (refused,) = await controller.create_topics([TopicCreation("t", 0, 1)], validate_only=True)
    assert refused.error is not None


@pytest.mark.parametrize("timeout_ms", [0, -1])
async def test_a_request_that_will_not_wait_gets_nothing_done(
    controller: Controller, timeout_ms: int
) -> None:
    for attempt in (
        lambda: controller.create_topics([TopicCreation("t", 1, 1)], timeout_ms=timeout_ms),
        lambda: controller.delete_topics([bytes(16)], timeout_ms=timeout_ms),
        lambda: controller.create_partitions([NewPartitions("t", 2)], timeout_ms=timeout_ms),
    ):
        with pytest.raises(KafkaError) as refusal:
            await attempt()
        assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert controller.active.context.topic("t") is None


async def test_waiting_for_a_turn_is_bounded_and_what_has_begun_is_finished(
    cluster: Cluster, controller: Controller, autojump_clock: trio.testing.MockClock
) -> None:
    store_answers = cluster.controller_store.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(create, controller, TopicCreation("slow", 1, 1))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(KafkaError) as refusal:
            await controller.create_topics([TopicCreation("late", 1, 1)], timeout_ms=500)
        assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert trio.current_time() == pytest.approx(0.5)
        store_answers.set()
    assert cluster.channel.cache.get_all_topics() == {"slow"}


async def test_a_topic_of_more_partitions_than_one_transaction_takes(
    cluster: Cluster, controller: Controller, reader: EmbeddedStore
) -> None:
    assert await create(controller, TopicCreation("wide", 1_201, 1)) == [ErrorCode.NONE]
    assert len(await reader.children("/brokers/topics/wide/partitions")) == 1_201
    assert cluster.channel.cache.partition_count("wide") == 1_201
    assert (await reader.get("/brokers/topics/wide/partitions/1200/state")).version == 0


async def test_a_broker_that_cannot_take_a_partition_up_is_logged(
    cluster: Cluster, controller: Controller, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.channel.refusals[TopicPartition("t", 0)] = ErrorCode.KAFKA_STORAGE_ERROR
    assert await create(controller, TopicCreation("t", 1, 1)) == [ErrorCode.NONE]
    await trio.testing.wait_all_tasks_blocked()
    assert "broker 1 cannot use the log directory of t-0" in caplog.text


async def test_replicas_go_to_all_brokers_there_are(cluster: Cluster) -> None:
    async with cluster.store() as others:
        await cluster.register(others, 2, 3)
        async with cluster.running() as controller:
            cluster.channel.sent.clear()
            assert await create(controller, TopicCreation("t", 3, 2)) == [ErrorCode.NONE]
            reported = {
                b: r for b, r in cluster.channel.sent if r in cluster.channel.leader_and_isr()
            }
            assert sorted(reported) == [1, 2, 3]
            for broker_id, request in reported.items():
                assert len(request.partition_states) == 2
                assert all(broker_id in state.replicas for state in request.partition_states)
            updated = [b for b, r in cluster.channel.sent if r in cluster.channel.update_metadata()]
            assert updated == [1, 2, 3]


# -- topics made when first used ------------------------------------------------------------


async def test_first_use_makes_a_topic_with_the_brokers_defaults(cluster: Cluster) -> None:
    cluster.configure(num_partitions="3")
    async with cluster.running() as controller:
        assert await controller.ensure_topics(["clicks"]) == {}
        assert cluster.channel.cache.partition_count("clicks") == 3
        assert cluster.channel.cache.topic_config("clicks") == {}


async def test_the_offsets_topic_is_made_as_kafka_makes_it(
    cluster: Cluster, controller: Controller, reader: EmbeddedStore
) -> None:
    assert await controller.ensure_topics(["__consumer_offsets"]) == {}
    assert cluster.channel.cache.partition_count("__consumer_offsets") == 50
    assert (await reader.get("/config/topics/__consumer_offsets")).data == (
        b'{"version":1,"config":{"compression.type":"producer","cleanup.policy":"compact",'
        b'"segment.bytes":"104857600"}}'
    )


async def test_simultaneous_first_uses_share_one_creation(
    cluster: Cluster, controller: Controller
) -> None:
    store_answers = cluster.controller_store.hold()
    reported: list[int] = []

    async def use() -> None:
        assert await controller.ensure_topics(["clicks"]) == {}
        reported.append(cluster.channel.cache.partition_count("clicks"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(use)
        await trio.testing.wait_all_tasks_blocked()
        assert reported == []
        store_answers.set()
    assert reported == [1] * 5
    assert len(cluster.channel.leader_and_isr()) == 1


async def test_of_the_topics_first_used_those_that_cannot_be_made_say_why(
    cluster: Cluster, controller: Controller
) -> None:
    await create(controller, TopicCreation("there", 1, 1))
    refusals = await controller.ensure_topics(["a b", "there", "new"])
    assert {name: refusal.code for name, refusal in refusals.items()} == {
        "a b": ErrorCode.INVALID_TOPIC_EXCEPTION
    }
    assert cluster.channel.cache.get_all_topics() == {"there", "new"}


# -- deletion ------------------------------------------------------------


async def test_deletion_tells_clients_then_replicas_and_removes_every_node(
    cluster: Cluster, controller: Controller, reader: EmbeddedStore
) -> None:
    await create(controller, TopicCreation("orders", 2, 1), TopicCreation("kept", 1, 1))
    deleted = topic_id(controller, "orders")
    cluster.channel.sent.clear()
    assert await controller.delete_topics([deleted]) == {deleted: None}
    (_, first), (_, second) = cluster.channel.sent
    assert first == cluster.channel.update_metadata()[0]
    assert {state.leader for state in first.partition_states} == {LEADER_DURING_DELETE}
    assert second == cluster.channel.stop_replica()[0]
    assert list(second.partitions) == [
        StoppedReplica(TopicPartition("orders", partition), -2, delete=True) for partition in (0, 1)
    ]
    assert cluster.channel.cache.get_all_topics() == {"kept"}
    assert await reader.children("/brokers/topics") == ["kept"]
    assert await reader.children("/config/topics") == ["kept"]
    assert await reader.children("/admin/delete_topics") == []
    assert controller.active.context.topic("orders") is None


async def test_a_topic_made_again_has_another_id(cluster: Cluster, controller: Controller) -> None:
    await create(controller, TopicCreation("orders", 1, 1))
    first = topic_id(controller, "orders")
    await controller.delete_topics([first])
    assert await create(controller, TopicCreation("orders", 2, 1)) == [ErrorCode.NONE]
    assert topic_id(controller, "orders") != first
    assert cluster.channel.cache.topic_id("orders") == topic_id(controller, "orders")


async def test_deleting_an_unknown_id_is_told(controller: Controller) -> None:
    outcome = (await controller.delete_topics([b"x" * 16]))[b"x" * 16]
    assert outcome is not None
    assert outcome.code is ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_log_that_cannot_be_deleted_keeps_the_mark_for_later(
    cluster: Cluster, controller: Controller, reader: EmbeddedStore
) -> None:
    await create(controller, TopicCreation("stuck", 1, 1))
    stuck = topic_id(controller, "stuck")
    cluster.channel.refusals[TopicPartition("stuck", 0)] = ErrorCode.KAFKA_STORAGE_ERROR
    # The client is told of the mark, which no failure undoes, and not of the disk.
    assert await controller.delete_topics([stuck]) == {stuck: None}
    assert await reader.children("/admin/delete_topics") == ["stuck"]
    assert await create(controller, TopicCreation("stuck", 1, 1)) == [
        ErrorCode.TOPIC_ALREADY_EXISTS
    ]
    assert not cluster.channel.cache.contains("stuck")


async def test_deletion_is_answered_when_the_logs_are_gone_or_time_is_up(
    cluster: Cluster, controller: Controller, autojump_clock: trio.testing.MockClock
) -> None:
    await create(controller, TopicCreation("slow", 1, 1), TopicCreation("slower", 1, 1))
    answered: list[str] = []

    async def delete(name: str, timeout_ms: int) -> None:
        deleted = topic_id(controller, name)
        assert await controller.delete_topics([deleted], timeout_ms=timeout_ms) == {deleted: None}
        answered.append(name)

    cluster.channel.is_silent = True
    async with trio.open_nursery() as nursery:
        nursery.start_soon(delete, "slow", 60_000)
        nursery.start_soon(delete, "slower", 500)
        await trio.sleep(1)
        assert answered == ["slower"]
        cluster.channel.answer_all()
    assert answered == ["slower", "slow"]
    assert trio.current_time() < 2
    await trio.testing.wait_all_tasks_blocked()
    assert not controller.active.context.has_name("slower")


# -- more partitions ------------------------------------------------------------


async def test_added_partitions_are_written_led_and_told(
    cluster: Cluster, controller: Controller, reader: EmbeddedStore
) -> None:
    await create(controller, TopicCreation("t", 1, 1, configs=[("retention.ms", "5")]))
    cluster.channel.sent.clear()
    assert await controller.create_partitions([NewPartitions("t", 3)]) == {"t": None}
    topic = znodes.decode_topic((await reader.get("/brokers/topics/t")).data)
    assert topic.assignment == {0: (1,), 1: (1,), 2: (1,)}
    assert topic.topic_id == topic_id(controller, "t")
    (reported,) = cluster.channel.leader_and_isr()
    assert [state.partition for state in reported.partition_states] == [1, 2]
    assert {state.config["retention.ms"] for state in reported.partition_states} == {"5"}
    assert cluster.channel.cache.partition_count("t") == 3
    assert await controller.create_partitions([NewPartitions("t", 4)]) == {"t": None}


async def test_impossible_additions_leave_the_others_alone(
    cluster: Cluster, controller: Controller
) -> None:
    await create(controller, TopicCreation("a", 1, 1), TopicCreation("b", 2, 1))
    outcomes = await controller.create_partitions(
        [NewPartitions("a", 2), NewPartitions("b", 2), NewPartitions("absent", 2)]
    )
    codes = {name: outcome and outcome.code for name, outcome in outcomes.items()}
    assert codes == {
        "a": None,
        "b": ErrorCode.INVALID_PARTITIONS,
        "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert cluster.channel.cache.partition_count("a") == 2


async def test_too_many_added_partitions_are_against_the_policy(controller: Controller) -> None:
    await create(controller, TopicCreation("t", 1, 1))
    with pytest.raises(KafkaError) as refusal:
        await controller.create_partitions([NewPartitions("t", 10_002)])
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION


async def test_validate_only_adds_nothing(cluster: Cluster, controller: Controller) -> None:
    await create(controller, TopicCreation("t", 1, 1))
    outcomes = await controller.create_partitions([NewPartitions("t", 3)], validate_only=True)
    assert outcomes == {"t": None}
    assert cluster.channel.cache.partition_count("t") == 1


async def test_an_addition_that_raced_another_writer_is_refused_and_leaves_no_trace(
    controller: Controller, reader: EmbeddedStore
) -> None:
    await create(controller, TopicCreation("t", 1, 1))
    node = await reader.get("/brokers/topics/t")
    await reader.set("/brokers/topics/t", node.data)
    topic = controller.active.context.topic("t")
    assert topic is not None
    outcome = (await controller.create_partitions([NewPartitions("t", 2)]))["t"]
    assert outcome is not None
    assert list(topic.assignment) == [0]
    assert await reader.children("/brokers/topics/t/partitions") == ["0"]


# -- settings ------------------------------------------------------------


async def test_new_partitions_are_told_the_settings_that_a_topic_has_by_then(
    cluster: Cluster, controller: Controller
) -> None:
    await create(controller, TopicCreation("t", 1, 1, configs=[("retention.ms", "5")]))
    controller.topic_config_changed("t", {"retention.ms": "6"})
    controller.topic_config_changed("absent", {"retention.ms": "6"})
    await controller.create_partitions([NewPartitions("t", 2)])
    assert cluster.channel.cache.topic_config("t") == {"retention.ms": "6"}


async def test_what_another_writer_wrote_of_a_topic_is_read_after_it_was_in_the_way(
    cluster: Cluster,
    controller: Controller,
    reader: EmbeddedStore,
    autojump_clock: trio.testing.MockClock,
) -> None:
    await create(controller, TopicCreation("t", 1, 1))
    topic = znodes.decode_topic((await reader.get("/brokers/topics/t")).data)
    grown = topic._replace(assignment={0: (1,), 1: (1,)})
    await reader.set("/brokers/topics/t", znodes.encode_topic(grown))
    assert (await controller.create_partitions([NewPartitions("t", 3)]))["t"] is not None
    await trio.sleep(1)
    assert cluster.channel.cache.partition_count("t") == 2
    assert await controller.create_partitions([NewPartitions("t", 3)]) == {"t": None}


# -- who is the controller ------------------------------------------------------------


async def test_a_broker_that_was_not_elected_refuses_to_decide(
    cluster: Cluster, reader: EmbeddedStore
) -> None:
    await reader.create("/controller", znodes.encode_controller(2, 0), ephemeral=True)
    async with cluster.running() as controller:
        assert not controller.is_active
        with pytest.raises(KafkaError) as refusal:
            await controller.create_topics([TopicCreation("t", 1, 1)])
        assert refusal.value.code is ErrorCode.NOT_CONTROLLER
        assert (await reader.get("/brokers/ids/1")).data
        assert await controller.producer_ids.take() == 0


async def test_the_store_lost_is_told_as_no_controller(
    cluster: Cluster, controller: Controller, reader: EmbeddedStore
) -> None:
    cluster.let_others_time_out(reader)
    with pytest.raises(NoNode):
        await reader.get("/controller")
    try:  # it may have noticed before it was asked
        codes = await create(controller, TopicCreation("t", 1, 1))
    except KafkaError as refusal:
        codes = [refusal.code]
    assert codes == [ErrorCode.NOT_CONTROLLER]


def test_live_brokers_are_told_with_their_listeners() -> None:
    broker = live_broker(1)
    assert isinstance(broker, LiveBroker)
    assert [endpoint.listener_name for endpoint in broker.endpoints] == ["PLAINTEXT", "INTERNAL"]

"""What a broker answers before it knows its cluster: nothing that depends on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from support.one_broker import SECONDS_MAX, Client, make, run_with

from odradek.broker import broker as broker_module
from odradek.broker.broker import Broker
from odradek.controller.topics.planning import TopicCreation
from odradek.protocol import messages
from odradek.protocol.api_keys import ApiKey

TOPIC = "orders"
AWAITING = {"odradek.await.topic.creation": "true"}
"""The first FindCoordinator makes the internal topic, and is answered when that is there."""

QUESTIONS: dict[ApiKey, tuple[int, Any, Callable[[Any], bool]]] = {
    ApiKey.METADATA: (
        12,
        messages.MetadataRequest(topics=None),
        lambda answer: (
            [each.node_id for each in answer.brokers] == [1]
            and [(topic.name, len(topic.partitions)) for topic in answer.topics] == [(TOPIC, 2)]
            and {part.leader_id for part in answer.topics[0].partitions} == {1}
        ),
    ),
    ApiKey.DESCRIBE_CLUSTER: (
        1,
        messages.DescribeClusterRequest(),
        lambda answer: [each.broker_id for each in answer.brokers] == [1],
    ),
    ApiKey.FIND_COORDINATOR: (
        4,
        messages.FindCoordinatorRequest(coordinator_keys=["group"]),
        lambda answer: answer.coordinators[0].node_id == 1,
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (
        0,
        messages.DescribeTopicPartitionsRequest(
            topics=[messages.DescribeTopicPartitionsRequest.TopicRequest(name=TOPIC)]
        ),
        lambda answer: len(answer.topics[0].partitions) == 2,
    ),
    ApiKey.LIST_OFFSETS: (
        7,
        messages.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                messages.ListOffsetsRequest.ListOffsetsTopic(
                    name=TOPIC,
                    partitions=[
                        messages.ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=1, current_leader_epoch=-1, timestamp=-1
                        )
                    ],
                )
            ],
        ),
        lambda answer: answer.topics[0].partitions[0].error_code == 0,
    ),
    ApiKey.CREATE_TOPICS: (
        7,
        messages.CreateTopicsRequest(
            topics=[
                messages.CreateTopicsRequest.CreatableTopic(
                    name=TOPIC, num_partitions=1, replication_factor=1
                )
            ],
            timeout_ms=SECONDS_MAX * 1000,
        ),
        lambda answer: answer.topics[0].error_code == 36,  # TOPIC_ALREADY_EXISTS
    ),
}
"""APIs that depend on the cluster, and whether an answer knows all of it."""


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """The data folder of a broker that was stopped, with one topic."""
    broker = await make(tmp_path)

    async def create() -> None:
        creation = TopicCreation(TOPIC, assignments=[(0, (1,)), (1, (1,))])
        (created,) = await broker.controller.create_topics([creation])
        assert created.error is None

    await run_with(broker, create)
    return tmp_path


class Controllerless:
    """A broker whose controller's requests go out only when the test lets them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.is_serving = trio.Event()
        self.may_send = trio.Event()
        send = broker.channels.run

        async def send_later() -> None:
            self.is_serving.set()
            await self.may_send.wait()
            await send()

        broker.channels.run = send_later  # type: ignore[method-assign]

    async def connect(self) -> Client:
        await self.is_serving.wait()
        return await Client.to(self.broker)


@pytest.mark.parametrize("api_key", QUESTIONS, ids=lambda key: key.name)
async def test_the_first_answer_is_complete(folder: Path, api_key: ApiKey) -> None:
    version, request, is_complete = QUESTIONS[api_key]
    started = Controllerless(await make(folder, AWAITING))
    ready = trio.Event()
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(started.broker.run, lambda _: ready.set())
            client = await started.connect()
            await client.send((3, api_versions()), (version, request))
            assert (await client.receive(ApiKey.API_VERSIONS, 3)).finalized_features_epoch >= 0
            await trio.testing.wait_all_tasks_blocked()
            assert not client.has_answer()
            started.may_send.set()
            assert is_complete(await client.receive(api_key, version))
            await ready.wait()
            nursery.cancel_scope.cancel()


async def test_what_waits_is_answered_in_order_on_every_connection(folder: Path) -> None:
    started = Controllerless(await make(folder, AWAITING))
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(started.broker.run, lambda _: None)
            clients = [await started.connect() for _ in range(3)]
            gone = clients.pop()
            await gone.send((12, messages.MetadataRequest(topics=None)))
            await gone.close()
            for client in clients:
                for version, request, _ in QUESTIONS.values():
                    await client.send((version, request))
            started.may_send.set()
            for client in clients:
                for api_key, (version, _, is_complete) in QUESTIONS.items():
                    assert is_complete(await client.receive(api_key, version)), api_key
            nursery.cancel_scope.cancel()


async def test_a_broker_that_starts_during_an_election_answers_when_it_is_over(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The controller goes before it has told the newcomer anything."""
    settings = {**AWAITING, "broker.id": "2", "metadata.log.dir": str(folder)}
    first = Controllerless(await make(folder, AWAITING))
    second = await make(tmp_path_factory.mktemp("second"), settings)
    version, request, _ = QUESTIONS[ApiKey.METADATA]
    life_of_first = trio.CancelScope()

    async def run_first() -> None:
        with life_of_first:
            await first.broker.run(lambda _: None)

    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_first)
            await first.is_serving.wait()
            while not first.broker.controller.is_active:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(second.run, lambda _: None)
            while not second.server.bound:
                await trio.lowlevel.checkpoint()
            client = await Client.to(second)
            await client.send((version, request))
            await trio.testing.wait_all_tasks_blocked()
            assert not client.has_answer()
            life_of_first.cancel()
            answer = await client.receive(ApiKey.METADATA, version)
            assert [each.node_id for each in answer.brokers] == [2]
            assert [(each.name, len(each.partitions)) for each in answer.topics] == [(TOPIC, 2)]
            nursery.cancel_scope.cancel()


async def test_without_a_controller_a_broker_says_so_and_answers_when_there_is_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_module, "JOIN_MS_MAX", 1)
    started = Controllerless(await make(folder, AWAITING))
    version, request, is_complete = QUESTIONS[ApiKey.METADATA]
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(started.broker.run, lambda _: None)
            client = await started.connect()
            await client.send((version, request))
            while caplog.text.count("broker 1 answers no client") < 3:
                await trio.lowlevel.checkpoint()
            assert not client.has_answer()
            started.may_send.set()
            assert is_complete(await client.receive(ApiKey.METADATA, version))
            nursery.cancel_scope.cancel()


async def test_a_broker_that_never_starts_is_waited_for_up_to_a_time_limit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(broker_module, "JOIN_MS_MAX", 1)
    broker = await make(folder, AWAITING)
    broker.companions = frozenset({1, 2})
    ready = trio.Event()
    with trio.fail_after(SECONDS_MAX):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.run, lambda _: ready.set())
            await ready.wait()
            nursery.cancel_scope.cancel()
    assert "answers with the 1 of 1 topics that it knows" in caplog.text


def api_versions() -> messages.ApiVersionsRequest:
    return messages.ApiVersionsRequest(client_software_name="test", client_software_version="1")

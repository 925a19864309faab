"""A topic that comes into being with a request that needs it, as Kafka 4.3.1 answers meanwhile."""

from typing import TYPE_CHECKING, Any

import pytest
import trio

from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import ZERO_UUID
from odradek.metadata.metadata_waiting import wait_for_metadata
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench

NOT_YET = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
AWAIT = "odradek.await.topic.creation"
Find = messages.FindCoordinatorRequest


@pytest.fixture
def settings() -> dict[str, str]:
    """The broker's own default."""
    return {AWAIT: "false"}


def metadata_of(*names: str) -> messages.MetadataRequest:
    make = messages.MetadataRequest
    topics = [make.MetadataRequestTopic(name=name) for name in names]
    return make(topics=topics, allow_auto_topic_creation=True)


async def until_there(bench: "Bench", name: str) -> None:
    cache = bench.broker.metadata_cache
    assert await wait_for_metadata(cache, lambda snapshot: cache.contains(name), 60_000)


def answered(answer: Any) -> list[tuple[str, int, bytes, int]]:
    return [
        (topic.name, topic.error_code, topic.topic_id, len(topic.partitions))
        for topic in answer.topics
    ]


def test_the_brokers_default_is_kafkas_way() -> None:
    from odradek.config.broker_config import BrokerConfig

    assert BrokerConfig.from_sources({})[AWAIT] is False


async def test_a_topic_made_on_the_way_is_not_there_yet(bench: "Bench") -> None:
    for _ in range(2):
        answer = await bench.client.call(metadata_of("t"), 12)
        assert answered(answer) == [("t", NOT_YET, ZERO_UUID, 0)]
    await until_there(bench, "t")
    ((name, error, topic_id, partitions),) = answered(await bench.client.call(metadata_of("t"), 12))
    assert (name, error, partitions) == ("t", ErrorCode.NONE, 1)
    assert topic_id != ZERO_UUID


async def test_a_topic_that_many_need_is_made_once(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, calls = bench.broker.controller, 0
    ensure_topics = controller.ensure_topics

    async def counted(names: Any) -> Any:
        nonlocal calls
        calls += 1
        return await ensure_topics(names)

    monkeypatch.setattr(controller, "ensure_topics", counted)
    for client in [bench.another_client() for _ in range(20)]:
        client.send(metadata_of("t"), 12)
    await until_there(bench, "t")
    assert calls == 1


async def test_a_deleted_topic_is_not_answered_complete(bench: "Bench") -> None:
    topic_id = await bench.create_topic("t")
    outcomes = await bench.broker.controller.delete_topics([topic_id])
    assert outcomes == {topic_id: None}
    answer = await bench.client.call(metadata_of("t"), 12)
    assert answered(answer) == [("t", NOT_YET, ZERO_UUID, 0)]


async def test_a_topic_that_cannot_be_made_is_tried_again(
    bench: "Bench", monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    async def refused(names: Any) -> dict[str, KafkaError]:
        tries.append(list(names))
        return {name: KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR) for name in names}

    monkeypatch.setattr(bench.broker.controller, "ensure_topics", refused)
    for _ in range(2):
        answer = await bench.client.call(metadata_of("t", "a b"), 12)
        assert [topic.error_code for topic in answer.topics] == [
            NOT_YET,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ]
        with trio.fail_after(60):
            while bench.broker.context.topics_in_creation:
                await trio.lowlevel.checkpoint()
    assert tries == [["t"], ["t"]]


@pytest.mark.parametrize(
    ("version", "request_"),
    [(2, Find(key="g", key_type=1)), (4, Find(coordinator_keys=["g"], key_type=1))],
)
async def test_the_coordinator_is_not_available_while_its_topic_is_made(
    bench: "Bench", version: int, request_: Any
) -> None:
    answer = await bench.client.call(request_, version)
    if version == 2:
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert answer.error_message == "The coordinator is not available."
    else:
        (found,) = answer.coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (found.error_message, found.node_id, found.host, found.port) == ("", -1, "", -1)
    await until_there(bench, "__transaction_state")
    answer = await bench.client.call(Find(coordinator_keys=["g"], key_type=1), 4)
    assert [found.error_code for found in answer.coordinators] == [ErrorCode.NONE]

"""What a request costs is bounded: long ones are handled in steps, repeated resources once.

Work is counted, not timed: a step is made as short as it can be, 64 items, and a task that looks on
counts how often it had a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio

from odradek.broker.handlers import describe_configs
from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.runtime import long_work
from odradek.runtime.steps import ITEMS_AT_LEAST

from .conftest import Bench

TOPIC = "orders"
PARTITIONS = 200
TOPIC_TYPE, BROKER_TYPE = 2, 4


class Onlooker:
    """Counts its turns of the loop."""

    def __init__(self) -> None:
        self.turns = 0

    async def run(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.turns += 1


@pytest.fixture
async def onlooker(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Onlooker:
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    onlooker = Onlooker()
    nursery.start_soon(onlooker.run)
    return onlooker


def resources(kind: int, names: Sequence[str]) -> messages.DescribeConfigsRequest:
    request = messages.DescribeConfigsRequest
    return request(
        resources=[
            request.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for name in names
        ],
        include_synonyms=True,
        include_documentation=True,
    )


async def test_a_broker_that_is_named_1500_times_is_described_once(bench: Bench) -> None:
    name = str(bench.broker.broker_id)
    once = await bench.client.call(resources(BROKER_TYPE, [name]), 4)
    many = await bench.client.call(resources(BROKER_TYPE, [name] * 1_500), 4)
    assert many == once
    assert [each.error_code for each in many.results] == [ErrorCode.NONE]


async def test_all_offsets_of_a_group_that_is_named_again_are_answered_once(bench: Bench) -> None:
    request = messages.OffsetFetchRequest
    group = request.OffsetFetchRequestGroup(group_id="g", topics=None)
    answer = await bench.client.call(request(groups=[group] * 700), 8)
    assert [each.group_id for each in answer.groups] == ["g"]


def producers(count: int) -> Any:
    request = messages.DescribeProducersRequest
    topic = request.TopicRequest(name=TOPIC, partition_indexes=[0] * count)
    return request(topics=[topic, topic])


def all_share_offsets(count: int) -> Any:
    request = messages.DescribeShareGroupOffsetsRequest
    group = request.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    return request(groups=[group] * count)


REPEATED: dict[str, tuple[Callable[[int], Any], int, Callable[[Any], list[Any]]]] = {
    "DescribeConfigs": (
        lambda count: resources(TOPIC_TYPE, [TOPIC] * count),
        4,
        lambda answer: answer.results,
    ),
    "DescribeGroups": (
        lambda count: messages.DescribeGroupsRequest(groups=["g"] * count),
        5,
        lambda answer: answer.groups,
    ),
    "ConsumerGroupDescribe": (
        lambda count: messages.ConsumerGroupDescribeRequest(group_ids=["g"] * count),
        1,
        lambda answer: answer.groups,
    ),
    "ShareGroupDescribe": (
        lambda count: messages.ShareGroupDescribeRequest(group_ids=["g"] * count),
        1,
        lambda answer: answer.groups,
    ),
    "StreamsGroupDescribe": (
        lambda count: messages.StreamsGroupDescribeRequest(group_ids=["g"] * count),
        0,
        lambda answer: answer.groups,
    ),
    "DescribeTransactions": (
        lambda count: messages.DescribeTransactionsRequest(transactional_ids=["x"] * count),
        0,
        lambda answer: answer.transaction_states,
    ),
    "DescribeProducers": (producers, 0, lambda answer: answer.topics[0].partitions),
    "DeleteGroups": (
        lambda count: messages.DeleteGroupsRequest(groups_names=["g"] * count),
        2,
        lambda answer: answer.results,
    ),
    "DescribeShareGroupOffsets": (all_share_offsets, 1, lambda answer: answer.groups),
}
"""By API: a request that names one thing so many times, its version, and what answers that."""


@pytest.mark.parametrize("name", REPEATED)
async def test_what_is_named_1500_times_is_answered_once(bench: Bench, name: str) -> None:
    request, version, answers = REPEATED[name]
    await bench.create_topic(TOPIC)
    once = await bench.client.call(request(1), version)
    many = await bench.client.call(request(1_500), version)
    assert many == once
    assert len(answers(many)) == 1


async def test_settings_behind_the_limit_of_an_answer_are_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number}" for number in range(4)]
    for name in names:
        await bench.create_topic(name)
    one = await bench.client.call(resources(TOPIC_TYPE, names[:1]), 4)
    size = sum(map(describe_configs._size, one.results[0].configs))
    monkeypatch.setattr(describe_configs, "ANSWER_BYTES_MAX", 2 * size - 1)
    answer = await bench.client.call(resources(TOPIC_TYPE, names), 4)
    assert [each.error_code for each in answer.results] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.POLICY_VIOLATION,
    ]


def list_offsets(count: int) -> Any:
    request = messages.ListOffsetsRequest
    partitions = [request.ListOffsetsPartition(partition_index=each) for each in range(count)]
    return request(
        replica_id=-1, topics=[request.ListOffsetsTopic(name=TOPIC, partitions=partitions)]
    )


def unknown_topics(count: int) -> Any:
    request = messages.MetadataRequest
    return request(
        topics=[request.MetadataRequestTopic(name=f"u{each}") for each in range(count)],
        allow_auto_topic_creation=False,
    )


def groups(count: int) -> Any:
    return messages.DescribeGroupsRequest(groups=[f"g{each}" for each in range(count)])


def epochs(count: int) -> Any:
    request = messages.OffsetForLeaderEpochRequest
    partitions = [request.OffsetForLeaderPartition(partition=each) for each in range(count)]
    topic = request.OffsetForLeaderTopic(topic=TOPIC, partitions=partitions)
    return request(topics=[topic])


def coordinators(count: int) -> Any:
    return messages.FindCoordinatorRequest(coordinator_keys=[f"g{each}" for each in range(count)])


LONG: dict[str, tuple[Callable[[int], Any], int]] = {
    "ListOffsets": (list_offsets, 7),
    "Metadata": (unknown_topics, 9),
    "DescribeGroups": (groups, 5),
    "OffsetForLeaderEpoch": (epochs, 4),
    "FindCoordinator": (coordinators, 4),
}


@pytest.mark.parametrize("name", LONG)
async def test_others_have_a_turn_after_each_step_of_a_long_request(
    bench: Bench, onlooker: Onlooker, name: str
) -> None:
    make, version = LONG[name]
    await bench.client.call(make(1), version)
    items = 40 * ITEMS_AT_LEAST
    before = onlooker.turns
    await bench.client.call(make(items), version)
    assert onlooker.turns - before >= items / ITEMS_AT_LEAST


@pytest.mark.parametrize("name", LONG)
async def test_a_small_request_is_answered_in_the_pass_that_it_comes_in(
    bench: Bench, name: str
) -> None:
    make, version = LONG[name]
    await bench.client.call(make(1), version)
    bench.client.send(make(2), version)
    assert bench.client.connection.output
    assert not bench.client.connection.is_parked


async def test_metadata_of_many_partitions_is_encoded_in_steps(
    bench: Bench, onlooker: Onlooker
) -> None:
    await bench.create_topic(TOPIC, PARTITIONS)
    request = messages.MetadataRequest(topics=None)
    for _ in range(2):  # the second time its partitions are known
        before = onlooker.turns
        answer = await bench.client.call(request, 12)
        assert onlooker.turns - before >= PARTITIONS / ITEMS_AT_LEAST
        assert [len(topic.partitions) for topic in answer.topics] == [PARTITIONS]


async def test_metadata_is_of_the_snapshot_in_which_the_answer_began(
    bench: Bench, onlooker: Onlooker
) -> None:
    await bench.create_topic(TOPIC, PARTITIONS)
    bench.client.send(messages.MetadataRequest(topics=None), 12)
    assert not bench.client.connection.output
    await bench.create_topic("later")
    answer = await bench.client.receive(3, 12)
    assert [topic.name for topic in answer.topics] == [TOPIC]
    assert {each.error_code for each in answer.topics[0].partitions} == {ErrorCode.NONE}


async def test_a_connection_has_one_long_request_at_work_and_the_next_ones_wait(
    bench: Bench, onlooker: Onlooker
) -> None:
    client = bench.client
    client.send(list_offsets(10 * ITEMS_AT_LEAST), 7)
    client.send(list_offsets(1), 7)
    assert client.connection.is_parked
    assert len(client.connection.unanswered) == 1
    assert client.connection.backlog


async def test_a_long_request_of_a_connection_that_is_closed_is_dropped(
    bench: Bench, onlooker: Onlooker, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = []
    topic = type(bench.broker.metadata_cache).contains_partition
    monkeypatch.setattr(
        type(bench.broker.metadata_cache),
        "contains_partition",
        lambda *arguments: looked_up.append(arguments) or topic(*arguments),
    )
    request = messages.OffsetCommitRequest
    partitions = [request.OffsetCommitRequestPartition(partition_index=each) for each in range(900)]
    of_topic = request.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
    bench.client.send(request(group_id="g", generation_id_or_member_epoch=-1, topics=[of_topic]), 8)
    bench.client.connection.closed()
    at_the_end = len(looked_up)
    for _ in range(30):
        await trio.lowlevel.checkpoint()
    assert 0 < at_the_end == len(looked_up) < len(partitions)

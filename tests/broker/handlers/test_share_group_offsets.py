"""DescribeShareGroupOffsets and AlterShareGroupOffsets: what is named again, and what is much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from odradek.broker.handlers import describe_share_group_offsets
from odradek.common.errors import ErrorCode
from odradek.protocol import messages

if TYPE_CHECKING:
    from conftest import Bench

PARTITIONS = 300
MEMBER = "member-of-twenty-two-c"
Describe = messages.DescribeShareGroupOffsetsRequest
Group = Describe.DescribeShareGroupOffsetsRequestGroup
Topic = Describe.DescribeShareGroupOffsetsRequestTopic
Alter = messages.AlterShareGroupOffsetsRequest
AlterTopic = Alter.AlterShareGroupOffsetsRequestTopic
AlterPartition = Alter.AlterShareGroupOffsetsRequestPartition


async def heartbeat(bench: Bench, epoch: int) -> ErrorCode:
    answer = await bench.client.call(
        messages.ShareGroupHeartbeatRequest(
            group_id="g", member_id=MEMBER, member_epoch=epoch, subscribed_topic_names=["t"]
        ),
        1,
    )
    return ErrorCode(answer.error_code)


async def describe(bench: Bench, *groups: Group) -> list[messages.Message]:
    return (await bench.client.call(Describe(groups=list(groups)), 1)).groups


@pytest.fixture
async def group(bench: Bench) -> None:
    """A group whose member has read a topic, and has left."""
    await bench.create_topic("t", PARTITIONS)
    with trio.fail_after(60):
        while await heartbeat(bench, 0):  # its coordinators are being made
            await bench.client.call(
                messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4
            )
        begun: list[messages.Message] = []
        while not begun or len(begun[0].partitions) < PARTITIONS:
            ((begun),) = [
                each.topics for each in await describe(bench, Group(group_id="g", topics=None))
            ]
    assert await heartbeat(bench, -1) is ErrorCode.NONE


async def test_what_is_named_again_is_answered_once(bench: Bench, group: None) -> None:
    named = Group(group_id="g", topics=[Topic(topic_name="t", partitions=[1, 0, 1, 1])])
    everything = Group(group_id="g", topics=None)

    first, second = await describe(bench, named, everything, named, everything)

    assert [each.partition_index for each in first.topics[0].partitions] == [1, 0]
    assert [each.partition_index for each in second.topics[0].partitions] == list(range(PARTITIONS))
    assert {each.start_offset for each in first.topics[0].partitions} == {-1}


async def test_offsets_of_many_partitions_are_altered_and_described(
    bench: Bench, group: None
) -> None:
    unknown = PARTITIONS
    answer = await bench.client.call(
        Alter(
            group_id="g",
            topics=[
                AlterTopic(
                    topic_name="t",
                    partitions=[
                        AlterPartition(partition_index=each, start_offset=each)
                        for each in (*range(PARTITIONS), unknown)
                    ],
                )
            ],
        ),
        0,
    )
    (topic,) = answer.responses
    assert [each.error_code for each in topic.partitions] == [
        *[ErrorCode.NONE] * PARTITIONS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]

    (described,) = await describe(bench, Group(group_id="g", topics=None))
    assert [each.start_offset for each in described.topics[0].partitions] == list(range(PARTITIONS))


async def test_groups_behind_too_many_partitions_are_refused(
    bench: Bench, group: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describe_share_group_offsets, "PARTITIONS_MAX", PARTITIONS - 1)

    first, second = await describe(
        bench, Group(group_id="g", topics=None), Group(group_id="g", topics=[Topic(topic_name="t")])
    )

    assert len(first.topics[0].partitions) == PARTITIONS
    assert second.error_code == ErrorCode.POLICY_VIOLATION


async def test_a_topic_whose_offsets_are_deleted_twice_is_deleted_once(
    bench: Bench, group: None
) -> None:
    request = messages.DeleteShareGroupOffsetsRequest
    topic = request.DeleteShareGroupOffsetsRequestTopic(topic_name="t")
    with trio.fail_after(30):
        answer = await bench.client.call(request(group_id="g", topics=[topic] * 5), 0)
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE] * 5
    (described,) = await describe(bench, Group(group_id="g", topics=None))
    assert not described.topics

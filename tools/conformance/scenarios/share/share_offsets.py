"""Where share groups stand: Describe-, Alter- and DeleteShareGroupOffsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .....common.errors import ErrorCode
from .....protocol.api_keys import ApiKey
from .....protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeGroupsRequest,
    DescribeShareGroupOffsetsRequest,
    ListGroupsRequest,
    ShareGroupDescribeRequest,
)
from ...scenario import scenario
from ...talk import Talk
from ..classic_groups import join
from ..groups_described import only
from .share_groups import ACCEPT, LEAVE, ShareMember, acquired_everywhere, beat, produced

PASSING = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS})


def describing(
    group: str, topics: Mapping[str, Sequence[int]] | None = None
) -> DescribeShareGroupOffsetsRequest:
    """A request for where a group stands; without topics, everywhere."""
    make = DescribeShareGroupOffsetsRequest
    named = None
    if topics is not None:
        named = [
            make.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(numbers))
            for name, numbers in topics.items()
        ]
    return make(groups=[make.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=named)])


def altering(group: str, topics: Mapping[str, Mapping[int, int]]) -> AlterShareGroupOffsetsRequest:
    """A request to have a group go on elsewhere."""
    make = AlterShareGroupOffsetsRequest
    partition = make.AlterShareGroupOffsetsRequestPartition
    return make(
        group_id=group,
        topics=[
            make.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    partition(partition_index=number, start_offset=offset)
                    for number, offset in offsets.items()
                ],
            )
            for name, offsets in topics.items()
        ],
    )


def deleting(group: str, *topics: str) -> DeleteShareGroupOffsetsRequest:
    """A request to have a group forget topics."""
    topic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    return DeleteShareGroupOffsetsRequest(
        group_id=group, topics=[topic(topic_name=name) for name in topics]
    )


def stands(talk: Talk, group: str | None = None) -> Any:
    """Note where a group stands, once its share coordinator and the leaders say it."""
    return talk.settled(describing(group or talk.name()), passing=PASSING)


def read_somewhat(talk: Talk) -> ShareMember:
    """A member that has 10 records of each of two partitions, and is done with some."""
    member = acquired_everywhere(talk, 2)
    member.say({0: [(0, 3, [ACCEPT]), (6, 7, [ACCEPT])], 1: []})
    return member


def left(talk: Talk) -> None:
    """The same, of a member that has left."""
    member = read_somewhat(talk)
    member.say({0: [], 1: []}, share_session_epoch=LEAVE)
    talk.ask(beat(talk.name(), epoch=LEAVE))


@scenario(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
def share_offsets_are_described(talk: Talk) -> None:
    read_somewhat(talk)
    group, topic = talk.name(), talk.name()
    talk.ask(describing(group), talk.version)
    for topics in ({topic: [0, 1]}, {"absent-topic": [0]}, {}):
        talk.ask(describing(group, topics), talk.version)
    join(talk, talk.name("classic"))
    for name in (talk.name("absent"), talk.name("classic")):
        talk.ask(describing(name), talk.version)
        talk.ask(describing(name, {topic: [0]}), talk.version)
    talk.ask(describing(""), talk.version)
    talk.ask(DescribeShareGroupOffsetsRequest(), talk.version)


@scenario(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
def share_offsets_are_altered(talk: Talk) -> None:
    left(talk)
    group, topic = talk.name(), talk.name()
    other = talk.name("other")
    talk.create_topic(other)
    stands(talk)
    talk.ask(altering(group, {topic: {0: 5, 7: 0}}), talk.version)
    stands(talk)
    for offsets in ({0: 0}, {0: 100}, {1: -1}, {7: 5}, {}):
        talk.ask(altering(group, {topic: offsets}), talk.version)
    talk.ask(altering(group, {other: {0: 1}, "absent-topic": {0: 1}}), talk.version)
    stands(talk)
    talk.ask(altering(group, {}), talk.version)
    talk.ask(ShareGroupDescribeRequest(group_ids=[group]))


@scenario(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
def share_offsets_cannot_be_altered(talk: Talk) -> None:
    read_somewhat(talk)
    talk.ask(altering(talk.name(), {talk.name(): {0: 5}}), talk.version)
    for group in ("", talk.name("absent")):
        talk.ask(altering(group, {talk.name(): {0: 5}}), talk.version)
    join(talk, talk.name("classic"))
    talk.ask(altering(talk.name("classic"), {talk.name(): {0: 5}}), talk.version)


@scenario(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
def share_offsets_are_altered_before_there_is_a_group(talk: Talk) -> None:
    topic, group = talk.name(), talk.name()
    topic_id = talk.create_topic(topic, 2)
    produced(talk, topic_id, [4, 4], 2)
    talk.ask(altering(talk.name("absent"), {"absent-topic": {0: 5}}), talk.version)
    talk.ask(ShareGroupDescribeRequest(group_ids=[talk.name("absent")]))
    talk.ask(altering(group, {topic: {0: 1}}), talk.version)
    stands(talk)
    talk.ask(ShareGroupDescribeRequest(group_ids=[group]))
    talk.ask(DescribeGroupsRequest(groups=[group]))
    only(talk.ask(ListGroupsRequest()), group)
    member = ShareMember(talk, topic_id, 2)
    member.join(topic)
    talk.ask(ShareGroupDescribeRequest(group_ids=[group]))
    member.fetch_all(3)
    stands(talk)


@scenario(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
def share_offsets_are_deleted(talk: Talk) -> None:
    # The other topic comes first: the coordinator that has given out this one knows of it, too.
    other = talk.name("other")
    talk.create_topic(other)
    left(talk)
    group, topic = talk.name(), talk.name()
    talk.ask(deleting(group, other, "absent-topic"), talk.version)
    talk.ask(deleting(group), talk.version)
    talk.ask(deleting(group, topic, other), talk.version)
    stands(talk)
    talk.ask(describing(group, {topic: [0]}))
    talk.ask(deleting(group, topic), talk.version)


@scenario(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
def share_offsets_cannot_be_deleted(talk: Talk) -> None:
    read_somewhat(talk)
    talk.ask(deleting(talk.name(), talk.name()), talk.version)
    for group in ("", talk.name("absent")):
        talk.ask(deleting(group, talk.name()), talk.version)
    join(talk, talk.name("classic"))
    talk.ask(deleting(talk.name("classic"), talk.name()), talk.version)

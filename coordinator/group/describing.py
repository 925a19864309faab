"""What DescribeGroups, ConsumerGroupDescribe and ListGroups say of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...common.errors import ErrorCode
from ...runtime.steps import Steps, map_in_steps
from .classic.group import ClassicGroup
from .classic.states import ClassicGroupState
from .consumer.group import ConsumerGroup
from .consumer.member import NO_TARGET, ConsumerGroupMember
from .consumer.topics import TopicsImage
from .consumer_protocol import CONSUMER_PROTOCOL_TYPE
from .share.share_group import ShareGroup
from .streams.group import StreamsGroup

CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"
"""The types of groups, as ListGroups names them (KIP-848)."""


def describe_classic_group(group: ClassicGroup) -> DescribedGroup:
    """All that DescribeGroups tells; protocol and metadata only while the group is stable."""
    protocol_name = group.protocol_name if group.state is ClassicGroupState.STABLE else None
    return DescribedGroup(
        group.group_id,
        ErrorCode.NONE,
        group.state.value,
        group.protocol_type or "",
        protocol_name or "",
        [
            DescribedMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                b"" if protocol_name is None else member.metadata(protocol_name),
                member.assignment,
            )
            for member in group.members.values()
        ],
    )


def list_groups(
    groups: Iterable[ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup],
    states: Iterable[str],
    types: Iterable[str],
) -> Steps[list[ListedGroup]]:
    """The groups in any of the states and of any of the types; no filter means all.

    Filters ignore case, as Kafka's do (KIP-518).
    """
    requested_states = set((yield from map_in_steps(_filter, states)))
    requested_types = set((yield from map_in_steps(_filter, types)))
    listings = []
    for group in groups:
        yield
        listing = _listing(group)
        if (not requested_types or listing.group_type in requested_types) and (
            not requested_states or listing.state.lower() in requested_states
        ):
            listings.append(listing)
    return listings


def _filter(text: str) -> str:
    return text.strip().lower()


def _listing(group: ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup) -> ListedGroup:
    if isinstance(group, StreamsGroup):
        return ListedGroup(group.group_id, STREAMS, group.replicated().state.value, STREAMS)
    if isinstance(group, ShareGroup):
        return ListedGroup(group.group_id, SHARE, group.replicated().state.value, SHARE)
    if isinstance(group, ConsumerGroup):
        state = group.replicated_state.value
        return ListedGroup(group.group_id, CONSUMER_PROTOCOL_TYPE, state, CONSUMER)
    return ListedGroup(group.group_id, group.protocol_type or "", group.state.value, CLASSIC)


class DescribedMember(NamedTuple):
    """A member as DescribeGroups tells of it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


class DescribedGroup(NamedTuple):
    """A group as DescribeGroups tells of it."""

    group_id: str
    error: ErrorCode
    state: str = ""
    protocol_type: str = ""
    protocol_name: str = ""
    members: Sequence[DescribedMember] = ()
    error_message: str | None = None


class ListedGroup(NamedTuple):
    """A group as ListGroups tells of it."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


MEMBER_TYPE_CLASSIC = 0
MEMBER_TYPE_CONSUMER = 1


class DescribedPartitions(NamedTuple):
    """Some partitions of one topic."""

    topic_id: bytes
    topic_name: str
    partitions: Sequence[int]


class DescribedConsumer(NamedTuple):
    """A member as ConsumerGroupDescribe tells of it."""

    member: ConsumerGroupMember
    assignment: Sequence[DescribedPartitions]
    target: Sequence[DescribedPartitions]

    @property
    def member_type(self) -> int:
        """Which protocol it speaks, as version 1 tells (KIP-1099)."""
        return MEMBER_TYPE_CLASSIC if self.member.uses_classic_protocol else MEMBER_TYPE_CONSUMER


class ConsumerGroupDescription(NamedTuple):
    """A group as ConsumerGroupDescribe tells of it."""

    group_id: str
    error: ErrorCode
    error_message: str | None = None
    state: str = ""
    epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: Sequence[DescribedConsumer] = ()


def describe_consumer_group(
    group: ConsumerGroup, default_assignor: str, topics: TopicsImage
) -> ConsumerGroupDescription:
    """All that ConsumerGroupDescribe tells; topics that are gone are not named any more."""
    image = group.replicated()
    return ConsumerGroupDescription(
        group.group_id,
        ErrorCode.NONE,
        None,
        image.state.value,
        image.epoch,
        image.target_epoch,
        image.preferred_assignor or default_assignor,
        [
            DescribedConsumer(
                member,
                _partitions(
                    (member.assigned_partitions, member.partitions_pending_revocation), topics
                ),
                _partitions((image.targets.get(member.member_id, NO_TARGET),), topics),
            )
            for member in image.members.values()
        ],
    )


def _partitions(
    assignments: Iterable[Mapping[bytes, Iterable[int]]], topics: TopicsImage
) -> list[DescribedPartitions]:
    numbers: dict[bytes, set[int]] = {}
    for assignment in assignments:
        for topic_id, partitions in assignment.items():
            numbers.setdefault(topic_id, set()).update(partitions)
    result = []
    for topic_id, found in numbers.items():
        name = topics.name_of(topic_id)
        if name is not None:
            result.append(DescribedPartitions(topic_id, name, sorted(found)))
    return result

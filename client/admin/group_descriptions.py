"""What brokers say about groups, of any type, in one form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ...protocol import messages
from ...protocol.errors import ProtocolError
from ...protocol.internal import find_message
from ...protocol.internal.versioned import decode_versioned

TopicPartition = tuple[str, int]

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
"""Types of groups; the second is also the protocol type of consumers' classic groups."""

INACTIVE_STATES: Final = frozenset({"Empty", "Dead"})
"""In these a group has no members, so that others may move its offsets."""

MEMBER_TYPES: Final = {0: CLASSIC, 1: CONSUMER}


class GroupListing(NamedTuple):
    """A group as its coordinator lists it.

    Attributes:
        type: "classic", "consumer", "share" and so on; "" of brokers older than Kafka 3.8.
        protocol_type: "consumer" for consumers, "share" for share groups, "connect" for Connect,
            "" where none joined.
        coordinator: the broker that listed it.
    """

    group_id: str
    type: str
    protocol_type: str
    state: str
    coordinator: int


class GroupMember(NamedTuple):
    """A member of a group.

    Attributes:
        epoch: of the member; None in a classic group, where all are of one generation.
        type: "classic" or "consumer": which protocol it speaks; both may be in a group that is
            being upgraded. "share" in a share group,
            "streams" in a streams group.
        topics: what it subscribes to by name, in a consumer or share group.
        regex: what it subscribes to by pattern, in a consumer group.
        assignment: what it reads now.
        target: what it shall read; differs while a consumer group reconciles.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    epoch: int | None
    type: str
    topics: tuple[str, ...]
    regex: str | None
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A group with its members.

    Attributes:
        assignor: who divides the partitions: of a classic group, its members' protocol.
        group_epoch: grows with each change of members or of what they subscribe to; None in a
            classic group.
        assignment_epoch: the group epoch that the target assignment was made for.
    """

    group_id: str
    type: str
    state: str
    coordinator: int
    protocol_type: str
    assignor: str
    group_epoch: int | None
    assignment_epoch: int | None
    members: tuple[GroupMember, ...]

    @property
    def is_share(self) -> bool:
        """Whether it is a share group, whose members may read the same partitions."""
        return self.type == SHARE


class ShareOffset(NamedTuple):
    """Where a share group stands in a partition.

    Attributes:
        start: the first record that is not done with; None before anybody has read there.
        lag: how many records are not done with; None where the coordinator does not know.
    """

    start: int | None
    lag: int | None


def consumer_group(
    group: messages.ConsumerGroupDescribeResponse.DescribedGroup, coordinator: int
) -> GroupDescription:
    """A group of KIP-848, from ConsumerGroupDescribe."""
    return _of_epochs(
        group,
        coordinator,
        CONSUMER,
        group.assignor_name,
        (
            _member(
                member,
                MEMBER_TYPES.get(member.member_type, CONSUMER),
                tuple(sorted(member.subscribed_topic_names)),
                _by_name(member.assignment.topic_partitions),
                _by_name(member.target_assignment.topic_partitions),
            )._replace(instance_id=member.instance_id, regex=member.subscribed_topic_regex or None)
            for member in group.members
        ),
    )


def share_group(
    group: messages.ShareGroupDescribeResponse.DescribedGroup, coordinator: int
) -> GroupDescription:
    """A group of KIP-932, from ShareGroupDescribe: several members may read one partition."""
    members = []
    for member in group.members:
        topics = tuple(sorted(member.subscribed_topic_names))
        assignment = _by_name(member.assignment.topic_partitions)
        members.append(_member(member, SHARE, topics, assignment, assignment))
    return _of_epochs(group, coordinator, SHARE, group.assignor_name, members)


def streams_group(
    group: messages.StreamsGroupDescribeResponse.DescribedGroup, coordinator: int
) -> GroupDescription:
    """A group of KIP-1071, from StreamsGroupDescribe: who reads what by its active tasks."""
    sources: dict[str, list[str]] = {}
    if group.topology is not None:
        for each in group.topology.subtopologies or ():
            repartitioned = (topic.name for topic in each.repartition_source_topics)
            sources[each.subtopology_id] = [*each.source_topics, *repartitioned]

    def read_by(
        assignment: messages.StreamsGroupDescribeResponse.Assignment,
    ) -> tuple[TopicPartition, ...]:
        return tuple(
            sorted(
                (topic, index)
                for task in assignment.active_tasks
                for topic in sources.get(task.subtopology_id, ())
                for index in task.partitions
            )
        )

    topics = tuple(sorted({topic for names in sources.values() for topic in names}))
    return _of_epochs(
        group,
        coordinator,
        STREAMS,
        "",
        (
            _member(
                member,
                STREAMS,
                topics,
                read_by(member.assignment),
                read_by(member.target_assignment),
            )._replace(instance_id=member.instance_id)
            for member in group.members
        ),
    )


def _of_epochs(
    group: messages.ConsumerGroupDescribeResponse.DescribedGroup
    | messages.ShareGroupDescribeResponse.DescribedGroup
    | messages.StreamsGroupDescribeResponse.DescribedGroup,
    coordinator: int,
    group_type: str,
    assignor: str,
    members: Iterable[GroupMember],
) -> GroupDescription:
    """A group that counts epochs."""
    return GroupDescription(
        group_id=group.group_id,
        type=group_type,
        state=group.group_state,
        coordinator=coordinator,
        protocol_type=group_type,
        assignor=assignor,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        members=tuple(sorted(members, key=lambda each: each.member_id)),
    )


def _member(
    member: messages.ConsumerGroupDescribeResponse.Member
    | messages.ShareGroupDescribeResponse.Member
    | messages.StreamsGroupDescribeResponse.Member,
    member_type: str,
    topics: tuple[str, ...],
    assignment: tuple[TopicPartition, ...],
    target: tuple[TopicPartition, ...],
) -> GroupMember:
    """A member of such a group, without a static identity."""
    return GroupMember(
        member_id=member.member_id,
        instance_id=None,
        client_id=member.client_id,
        host=member.client_host,
        rack=member.rack_id,
        epoch=member.member_epoch,
        type=member_type,
        topics=topics,
        regex=None,
        assignment=assignment,
        target=target,
    )


def _by_name(
    topics: Iterable[
        messages.ConsumerGroupDescribeResponse.TopicPartitions
        | messages.ShareGroupDescribeResponse.TopicPartitions
    ],
) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted((topic.topic_name, index) for topic in topics for index in topic.partitions)
    )


def classic_group(
    group: messages.DescribeGroupsResponse.DescribedGroup, coordinator: int
) -> GroupDescription:
    """A classic group, from DescribeGroups."""
    is_consumers = group.protocol_type == CONSUMER
    return GroupDescription(
        group_id=group.group_id,
        type=CLASSIC,
        state=group.group_state,
        coordinator=coordinator,
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        group_epoch=None,
        assignment_epoch=None,
        members=tuple(
            _classic_member(member, is_consumers)
            for member in sorted(group.members, key=lambda each: each.member_id)
        ),
    )


def _classic_member(
    member: messages.DescribeGroupsResponse.DescribedGroupMember, is_consumer: bool
) -> GroupMember:
    topics, assignment = _consumer_protocol(member) if is_consumer else ((), ())
    return GroupMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        rack=None,
        epoch=None,
        type=CLASSIC,
        topics=topics,
        regex=None,
        assignment=assignment,
        target=assignment,
    )


def _consumer_protocol(
    member: messages.DescribeGroupsResponse.DescribedGroupMember,
) -> tuple[tuple[str, ...], tuple[TopicPartition, ...]]:
    """What a member subscribes to and was given; nothing where it did not say it as consumers do,
    or while the group is between two assignments."""
    topics: tuple[str, ...] = ()
    assignment: tuple[TopicPartition, ...] = ()
    try:
        if member.member_metadata:
            said, _ = decode_versioned(
                find_message("ConsumerProtocolSubscription"),
                bytes(member.member_metadata),
                newer_as_newest=True,
            )
            topics = tuple(sorted(said.topics))
        if member.member_assignment:
            given, _ = decode_versioned(
                find_message("ConsumerProtocolAssignment"),
                bytes(member.member_assignment),
                newer_as_newest=True,
            )
            assignment = tuple(
                sorted(
                    (topic.topic, index)
                    for topic in given.assigned_partitions
                    for index in topic.partitions
                )
            )
    except ProtocolError:
        return topics, assignment
    return topics, assignment

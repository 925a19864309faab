"""What is told of a consumer group to those who ask about it: ConsumerGroupDescribe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ....common.errors import ErrorCode
from .group import ConsumerGroup
from .member import NO_TARGET, ConsumerGroupMember
from .subscription.topics import TopicsImage

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


def describe(
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

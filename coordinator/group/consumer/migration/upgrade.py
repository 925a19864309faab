"""The members of a classic group as members of a consumer group.

Each has what the leader assigned last, which is its target too, in the group's generation. So
nothing moves before the first member of the new protocol is assigned something. What a cooperative
member owned when it joined and nobody was assigned it has too, since it may not know yet that it
is to give it up; Kafka does not look at that. Source: Kafka 4.3's
`ConsumerGroup.fromClassicGroup`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...classic.group import Group
from ...classic.member import GroupMember
from ..member import ClassicMemberMetadata, ClassicProtocol, ConsumerGroupMember, TargetAssignment
from ..subscription.topics import TopicsImage
from .embedded_protocol import Subscription, TopicPartitions, read_assignment, read_subscription


def consumer_members(
    classic: Group, image: TopicsImage
) -> list[tuple[ConsumerGroupMember, TargetAssignment]]:
    """The members, and the target of each.

    Raises:
        ProtocolError: a member's metadata or assignment cannot be read.
        CustomAssignorError: an assignment has data of an assignor of the members' own.
    """
    if not classic.members:
        return []
    protocol_name = classic.protocol_name or classic.select_protocol()
    members = list(classic.members.values())
    said = [read_subscription(_metadata(member, protocol_name)) for member in members]
    targets = [by_topic_id(read_assignment(member.assignment), image) for member in members]
    owned = _owned(targets, [by_topic_id(subscription.owned, image) for subscription in said])
    return [
        (_consumer_member(member, subscription, classic.generation_id, has), target)
        for member, subscription, has, target in zip(members, said, owned, targets, strict=True)
    ]


def _owned(
    targets: Sequence[TargetAssignment], claims: Sequence[TargetAssignment]
) -> list[dict[bytes, set[int]]]:
    """What each member has: its target, and what it claims and nobody else has."""
    owned = [{topic_id: set(numbers) for topic_id, numbers in target.items()} for target in targets]
    taken = {
        (topic_id, number)
        for target in targets
        for topic_id, numbers in target.items()
        for number in numbers
    }
    for has, claim in zip(owned, claims, strict=True):
        for topic_id, numbers in claim.items():
            free = {number for number in numbers if (topic_id, number) not in taken}
            if free:
                has.setdefault(topic_id, set()).update(free)
                taken.update((topic_id, number) for number in free)
    return owned


def _consumer_member(
    member: GroupMember,
    subscription: Subscription,
    generation_id: int,
    owned: Mapping[bytes, Iterable[int]],
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        member.member_id,
        generation_id,
        generation_id,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=subscription.topics,
        assigned_partitions={
            topic_id: dict.fromkeys(sorted(numbers), generation_id)
            for topic_id, numbers in owned.items()
        },
        classic_member_metadata=ClassicMemberMetadata(
            member.session_timeout_ms,
            tuple(ClassicProtocol(name, metadata) for name, metadata in member.protocols),
        ),
    )


def _metadata(member: GroupMember, protocol_name: str) -> bytes:
    """The member's metadata; one that rejoins may have dropped the group's protocol, but each
    of a consumer's protocols has the same subscription."""
    by_name = dict(member.protocols)
    return by_name.get(protocol_name, member.protocols[0].metadata)


def by_topic_id(partitions: TopicPartitions, image: TopicsImage) -> dict[bytes, frozenset[int]]:
    """Partitions by topic id; those of topics that are gone are not in it."""
    result: dict[bytes, frozenset[int]] = {}
    for name, numbers in partitions.items():
        topic = image.find(name)
        if topic is not None and numbers:
            result[topic.topic_id] = frozenset(numbers)
    return result

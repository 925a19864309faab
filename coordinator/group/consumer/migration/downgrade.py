"""A consumer group of which only classic members are left, as a classic group.

It is stable in the consumer group's epoch. Where it goes on without a rebalance everybody is
assigned its target. Where a rebalance follows everybody is assigned what it owns, although Kafka
writes the target there too: a member of the consumer protocol that joins before the rebalance is
over would get what others have not given up. Source: Kafka 4.3's `ClassicGroup.fromConsumerGroup`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ...classic.group import Group
from ...classic.join_request import MemberProtocol
from ...classic.member import GroupMember
from ...classic.states import GroupState
from ...subscription import CONSUMER_PROTOCOL_TYPE
from ..group import ConsumerGroup
from ..member import ConsumerGroupMember
from ..subscription.topics import TopicsImage
from .embedded_protocol import write_assignment


def classic_group(
    group: ConsumerGroup,
    leaving: Collection[str],
    image: TopicsImage,
    now_ms: int,
    *,
    keeps_targets: bool,
) -> Group:
    """The classic group of a consumer group's members, but for those that leave.

    Args:
        group: of which the others are all on the classic protocol, one at least.
        leaving: ids of members.
        image: names topics.
        now_ms: wall time.
        keeps_targets: whether members are assigned their targets, not what they own.
    """
    classic = Group(group.group_id, group.partition, now_ms)
    classic.offsets, classic.in_flight = group.offsets, group.in_flight
    for member in group.members.values():
        if member.member_id not in leaving:
            classic.add(_classic_member(member), None)
    classic.generation_id = group.epoch
    classic.protocol_name = classic.select_protocol()
    for classic_member in classic.members.values():
        member_id = classic_member.member_id
        share = group.target_of(member_id) if keeps_targets else _owned(group.members[member_id])
        classic_member.assignment = write_assignment(
            by_topic_name(share, image), classic_member.metadata(classic.protocol_name)
        )
    classic.enter(GroupState.STABLE, now_ms)
    classic.update_subscribed_topics()
    return classic


def _owned(member: ConsumerGroupMember) -> dict[bytes, frozenset[int]]:
    """What the member has, with what it was asked to give up and may have still."""
    owned: dict[bytes, frozenset[int]] = {}
    for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
        for topic_id, numbers in partitions.items():
            owned[topic_id] = owned.get(topic_id, frozenset()) | numbers.keys()
    return owned


def _classic_member(member: ConsumerGroupMember) -> GroupMember:
    said = member.classic_member_metadata
    assert said is not None
    return GroupMember(
        member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=said.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=[MemberProtocol(name, metadata) for name, metadata in said.supported_protocols],
    )


def by_topic_name(
    partitions: Mapping[bytes, Iterable[int]], image: TopicsImage
) -> dict[str, frozenset[int]]:
    """Partitions by topic; those of topics that are gone are not in it."""
    result: dict[str, frozenset[int]] = {}
    for topic_id, numbers in partitions.items():
        name = image.name_of(topic_id)
        if name is not None:
            result[name] = frozenset(numbers)
    return result

"""Reconciliation: what one member may own now, on the way to its target assignment.

A member first gives up what is no longer its own, and keeps its epoch while it does. Then it
takes the target's epoch and whatever of the target is free; what others have not given up yet
follows with later heartbeats. Nobody waits for anybody else's heartbeat. Source: KIP-848;
Kafka 4.3's CurrentAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import NamedTuple

from ....common.errors import ErrorCode, KafkaError
from .member import NO_PARTITIONS, ConsumerGroupMember, OwnedPartitions, TargetAssignment
from .states import MEMBER_TRANSITIONS, MemberEvent, MemberState


class Reconciliation(NamedTuple):
    """What the way of one member depends on.

    Attributes:
        member: as it is.
        target_epoch: the epoch that the target was computed for.
        target: what it is to own.
        subscribed_topic_ids: the topics that it reads; it may have changed its mind since the
            target was computed, and owns nothing of other topics.
        has_subscription_changed: whether it did so in this heartbeat.
        owned: what the client says that it owns; None if it did not say.
        is_taken: whether another member owns a partition still.
    """

    member: ConsumerGroupMember
    target_epoch: int
    target: TargetAssignment
    subscribed_topic_ids: Set[bytes]
    has_subscription_changed: bool
    owned: Mapping[bytes, Set[int]] | None
    is_taken: Callable[[bytes, int, str], bool]


def reconcile(way: Reconciliation) -> ConsumerGroupMember:
    """The member after one step; the same one if it cannot go on yet.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH, a newer broker left the member in a state that is not
            known here, and it still owns partitions.
    """
    member = way.member
    if member.state is MemberState.STABLE:
        if member.member_epoch != way.target_epoch:
            return _take_step(way, member.member_epoch)
        return _drop_unsubscribed(way) if way.has_subscription_changed else member
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _still_owns(way, member.partitions_pending_revocation):
            return _drop_unsubscribed(way) if way.has_subscription_changed else member
        return _take_step(way, member.member_epoch)
    if member.state is MemberState.UNRELEASED_PARTITIONS:
        return _take_step(way, member.member_epoch)
    if way.owned is None or way.owned:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its "
            "partitions and rejoin.",
        )
    return _take_step(way, way.target_epoch)


def _take_step(way: Reconciliation, member_epoch: int) -> ConsumerGroupMember:
    """Give up what is not in the target; else take what is free of it."""
    member = way.member
    member_id = member.member_id
    assigned: dict[bytes, dict[int, int]] = {}
    to_revoke: dict[bytes, dict[int, int]] = {}
    to_assign: dict[bytes, list[int]] = {}
    must_wait = False
    for topic_id in way.target.keys() | member.assigned_partitions.keys():
        current = member.assigned_partitions.get(topic_id, {})
        target: Set[int] = frozenset()
        if topic_id in way.subscribed_topic_ids:
            target = way.target.get(topic_id, frozenset())
        kept = {number: epoch for number, epoch in current.items() if number in target}
        if kept:
            assigned[topic_id] = kept
        if len(kept) < len(current):
            to_revoke[topic_id] = {
                number: epoch for number, epoch in current.items() if number not in target
            }
        missing = [number for number in target if number not in kept]
        free = [number for number in missing if not way.is_taken(topic_id, number, member_id)]
        must_wait = must_wait or len(free) < len(missing)
        if free:
            to_assign[topic_id] = free
    if to_revoke and _still_owns(way, to_revoke):
        return member.with_epoch(member_epoch)._replace(
            state=MEMBER_TRANSITIONS.next_state(member.state, MemberEvent.MUST_REVOKE),
            assigned_partitions=assigned,
            partitions_pending_revocation=to_revoke,
        )
    for topic_id, numbers in to_assign.items():
        assigned.setdefault(topic_id, {}).update(dict.fromkeys(numbers, way.target_epoch))
    event = MemberEvent.MUST_WAIT if must_wait else MemberEvent.COMPLETE
    return member.with_epoch(way.target_epoch)._replace(
        state=MEMBER_TRANSITIONS.next_state(member.state, event),
        assigned_partitions=assigned,
        partitions_pending_revocation=NO_PARTITIONS,
    )


def _drop_unsubscribed(way: Reconciliation) -> ConsumerGroupMember:
    """Give up partitions of topics that the member does not read any more, without a new target.

    The next target may have to wait for its interval; a change of subscription does not.
    """
    member = way.member
    gone = [
        topic_id
        for topic_id in member.assigned_partitions
        if topic_id not in way.subscribed_topic_ids
    ]
    if not gone:
        return member
    assigned = dict(member.assigned_partitions)
    to_revoke = dict(member.partitions_pending_revocation)
    for topic_id in gone:
        to_revoke[topic_id] = {**to_revoke.get(topic_id, {}), **assigned.pop(topic_id)}
    moved = member.with_epoch(member.member_epoch)
    if _still_owns(way, to_revoke):
        return moved._replace(
            state=MEMBER_TRANSITIONS.next_state(member.state, MemberEvent.MUST_REVOKE),
            assigned_partitions=assigned,
            partitions_pending_revocation=to_revoke,
        )
    return moved._replace(assigned_partitions=assigned)


def _still_owns(way: Reconciliation, partitions: OwnedPartitions) -> bool:
    """Whether the client owns any of these; one that does not say may own them all."""
    if way.owned is None:
        return True
    return any(
        number in partitions.get(topic_id, NO_PARTITIONS)
        for topic_id, numbers in way.owned.items()
        for number in numbers
    )

"""The assignors of classic groups: who reads what, as the member that leads a group decides.

Functions of members and topics, nothing else. What they give is what Kafka's clients give:
`range` and `roundrobin` to the partition, `cooperative-sticky` balanced as well and as sticky,
which is all that other members depend on. Source: Kafka's `RangeAssignor`, `RoundRobinAssignor`,
`CooperativeStickyAssignor` (KIP-429).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Final, NamedTuple

from ....common.sentinels import NO_EPOCH
from ..offsets import TopicPartition


class MemberSubscription(NamedTuple):
    """One member, as an assignor sees it.

    Attributes:
        topics: that it subscribes to.
        owned: what it has not given up.
        generation: in which it was given that; -1 where it does not say.
        instance_id: of a static member.
    """

    topics: frozenset[str]
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = NO_EPOCH
    instance_id: str | None = None


Members = Mapping[str, MemberSubscription]
PartitionCounts = Mapping[str, int]
"""How many partitions each topic has; what is missing does not exist."""
Assignment = dict[str, set[TopicPartition]]
"""Partitions by member id."""


class ClientAssignor(NamedTuple):
    """An assignor.

    Attributes:
        assign: gives every existing partition to one subscriber.
        is_cooperative: whether members keep their partitions while they join again, and give up
            only what is taken from them.
    """

    assign: Callable[[Members, PartitionCounts], Assignment]
    is_cooperative: bool


def assign_ranges(members: Members, partition_counts: PartitionCounts) -> Assignment:
    """Neighbouring partitions of each topic; the first members get the odd ones."""
    assignment: Assignment = {member_id: set() for member_id in members}
    ordered = _static_first(members)
    for topic in _topics_of(members, partition_counts):
        subscribers = [member_id for member_id in ordered if topic in members[member_id].topics]
        quota, longer = divmod(partition_counts[topic], len(subscribers))
        start = 0
        for index, member_id in enumerate(subscribers):
            end = start + quota + (index < longer)
            assignment[member_id].update((topic, number) for number in range(start, end))
            start = end
    return assignment


def assign_round_robin(members: Members, partition_counts: PartitionCounts) -> Assignment:
    """Partition by partition to the next member that subscribes."""
    assignment: Assignment = {member_id: set() for member_id in members}
    turns = cycle(_static_first(members))
    for topic in _topics_of(members, partition_counts):
        for number in range(partition_counts[topic]):
            member_id = next(each for each in turns if topic in members[each].topics)
            assignment[member_id].add((topic, number))
    return assignment


def assign_cooperatively(members: Members, partition_counts: PartitionCounts) -> Assignment:
    """Balanced with few moves; a partition that changes its owner is given to nobody until that
    has given it up and joined again."""
    owners = _owners(members, partition_counts)
    assignment: Assignment = {member_id: set() for member_id in members}
    for partition, member_id in owners.items():
        assignment[member_id].add(partition)
    subscribers = {
        topic: sorted(each for each in members if topic in members[each].topics)
        for topic in _topics_of(members, partition_counts)
    }
    for topic, candidates in subscribers.items():
        for number in range(partition_counts[topic]):
            if (topic, number) not in owners:
                least = min(candidates, key=lambda each: len(assignment[each]))
                assignment[least].add((topic, number))
    _balance(assignment, subscribers)
    for member_id, partitions in assignment.items():
        partitions -= {each for each in partitions if owners.get(each, member_id) != member_id}
    return assignment


ASSIGNORS: Final[Mapping[str, ClientAssignor]] = {
    "range": ClientAssignor(assign_ranges, is_cooperative=False),
    "roundrobin": ClientAssignor(assign_round_robin, is_cooperative=False),
    "cooperative-sticky": ClientAssignor(assign_cooperatively, is_cooperative=True),
}
"""By the names that members agree upon."""


def _owners(members: Members, partition_counts: PartitionCounts) -> dict[TopicPartition, str]:
    """Who owns what. Of several that claim a partition the one of the newest generation does,
    and nobody where they claim it in the same one."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member_id, member in members.items():
        for topic, number in member.owned:
            if topic in member.topics and number < partition_counts.get(topic, 0):
                claims.setdefault((topic, number), []).append((member.generation, member_id))
    owners = {}
    for partition, claimants in claims.items():
        newest = max(generation for generation, _ in claimants)
        holders = [member_id for generation, member_id in claimants if generation == newest]
        if len(holders) == 1:
            owners[partition] = holders[0]
    return owners


def _balance(assignment: Assignment, subscribers: Mapping[str, list[str]]) -> None:
    """Move partitions from members with many to such with two less, until there are none."""
    has_moved = True
    while has_moved:
        has_moved = False
        for member_id in sorted(assignment, key=lambda each: -len(assignment[each])):
            own = assignment[member_id]
            for partition in sorted(own, reverse=True):
                least = min(subscribers[partition[0]], key=lambda each: len(assignment[each]))
                if len(own) - len(assignment[least]) > 1:
                    own.discard(partition)
                    assignment[least].add(partition)
                    has_moved = True


def _topics_of(members: Members, partition_counts: PartitionCounts) -> list[str]:
    """The topics that exist and have a subscriber, in order."""
    subscribed = {topic for member in members.values() for topic in member.topics}
    return sorted(topic for topic in subscribed if partition_counts.get(topic, 0) > 0)


def _static_first(members: Members) -> list[str]:
    """Static members by their instance ids, then the others by their member ids."""
    return sorted(
        members,
        key=lambda each: (members[each].instance_id is None, members[each].instance_id or each),
    )

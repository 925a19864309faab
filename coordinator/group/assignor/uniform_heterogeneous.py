"""The uniform assignment of members that subscribe to different topics.

First everybody keeps what it still subscribes to; then what nobody has is given out, topic by
topic, always to the subscriber that has least; then partitions move, topic by topic, from the
subscriber that has most to the one that has least, until a round over all topics moves
nothing or the rounds are used up. Source: Kafka's `UniformHeterogeneousAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat

from .assignor import AssignorError, GroupSpec, NewAssignment
from .balancer import Balancer

ROUNDS_MAX = 16
"""Each round about halves what is out of balance, where subscriptions overlap; else one is
enough, and a second one sees that."""

NOBODY = -1


def assign_heterogeneous(
    group: GroupSpec, partition_counts: Mapping[bytes, int]
) -> dict[str, NewAssignment]:
    """The target assignment; see `Assignor.assign`."""
    return _Builder(group, partition_counts).build()


class _Builder:
    """One assignment in the making; members are numbers, in the group's order."""

    def __init__(self, group: GroupSpec, partition_counts: Mapping[bytes, int]) -> None:
        self._members = group.members
        self._subscribers: dict[bytes, list[int]] = {}
        for number, member in enumerate(group.members.values()):
            for topic_id in member.topic_ids:
                if topic_id not in partition_counts:
                    raise AssignorError(
                        f"a member subscribes to topic {topic_id.hex()}: there is none"
                    )
                self._subscribers.setdefault(topic_id, []).append(number)
        self._owners: dict[bytes, list[int]] = {
            topic_id: list(repeat(NOBODY, partition_counts[topic_id]))
            for topic_id in self._subscribers
        }
        self._sizes = [0] * len(group.members)
        self._topic_ids = sorted(self._subscribers, key=self._least_room_first)

    def _least_room_first(self, topic_id: bytes) -> tuple[float, int, bytes]:
        """Most partitions for each subscriber, then fewest subscribers, then the id as Kafka
        compares ids: two signed numbers."""
        subscribers = len(self._subscribers[topic_id])
        signed = bytes((topic_id[0] ^ 0x80,)) + topic_id[1:8]
        signed += bytes((topic_id[8] ^ 0x80,)) + topic_id[9:]
        return -len(self._owners[topic_id]) / subscribers, subscribers, signed

    def build(self) -> dict[str, NewAssignment]:
        """The assignment, once."""
        if not self._topic_ids:
            return {}
        self._keep()
        self._give_out()
        self._balance()
        return self._result()

    def _keep(self) -> None:
        for number, member in enumerate(self._members.values()):
            for topic_id, partitions in member.assignment.items():
                if topic_id in member.topic_ids:
                    owners = self._owners[topic_id]
                    for partition in partitions:
                        owners[partition] = number
                    self._sizes[number] += len(partitions)

    def _give_out(self) -> None:
        for topic_id in self._topic_ids:
            owners = self._owners[topic_id]
            unassigned = [number for number, owner in enumerate(owners) if owner == NOBODY]
            if not unassigned:
                continue
            balancer = Balancer(self._sizes, self._subscribers[topic_id])
            for partition in unassigned:
                self._assign(owners, partition, balancer.next_least_loaded())

    def _balance(self) -> None:
        topic_ids = [
            topic_id for topic_id in self._topic_ids if len(self._subscribers[topic_id]) > 1
        ]
        last_changed: bytes | None = None
        for _ in range(ROUNDS_MAX):
            for topic_id in topic_ids:
                if topic_id == last_changed:
                    return  # once around without a change
                if self._balance_topic(topic_id) or last_changed is None:
                    last_changed = topic_id

    def _balance_topic(self, topic_id: bytes) -> bool:
        """Move partitions of a topic to where fewer are; whether any moved."""
        balancer = Balancer(self._sizes, self._subscribers[topic_id])
        if balancer.imbalance <= 1:
            return False
        owners = self._owners[topic_id]
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(owners):
            owned.setdefault(owner, []).append(partition)
        has_moved = False
        while True:
            giver = balancer.next_most_loaded()
            while giver is not None and not owned.get(giver):
                balancer.exclude_most_loaded()
                giver = balancer.next_most_loaded()
            if giver is None:
                return has_moved
            partition = owned[giver].pop()
            taker = balancer.next_least_loaded()
            if balancer.is_balanced:
                return has_moved
            self._assign(owners, partition, taker)
            has_moved = True

    def _assign(self, owners: list[int], partition: int, number: int) -> None:
        before = owners[partition]
        if before != NOBODY:
            self._sizes[before] -= 1
        owners[partition] = number
        self._sizes[number] += 1

    def _result(self) -> dict[str, NewAssignment]:
        parts: list[dict[bytes, set[int]]] = [{} for _ in self._sizes]
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                parts[owner].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(numbers) for topic_id, numbers in part.items()}
            for member_id, part in zip(self._members, parts, strict=True)
        }

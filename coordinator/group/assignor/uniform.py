"""The uniform assignor: as many partitions for each member as for any other, and few moves.

Balance comes before stickiness: members keep what they have as far as nobody gets more than one
partition above another. Where all members subscribe alike a single pass is enough; where they do
not, topics are balanced one by one, again and again. Source: Kafka's `UniformAssignor`,
`UniformHomogeneousAssignmentBuilder` and `UniformHeterogeneousAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import repeat

from .assignor import Assignment, AssignorError, GroupSpec, NewAssignment, without_overlaps


class Balancer:
    """The subscribers of one topic.

    Args:
        sizes: how many partitions each member has, by its number. Read again as ranges grow:
            who calls moves partitions meanwhile.
        subscribers: the numbers of the members that subscribe; one at least.

    Attributes:
        imbalance: how many partitions more than the least loaded the most loaded had.
    """

    __slots__ = (
        "_give_next",
        "_least_end",
        "_least_level",
        "_members",
        "_most_end",
        "_most_level",
        "_most_start",
        "_sizes",
        "_take_next",
        "imbalance",
    )

    def __init__(self, sizes: list[int], subscribers: Sequence[int]) -> None:
        members = sorted(subscribers, key=lambda number: (sizes[number], number))
        self._sizes = sizes
        self._members = members
        self._least_end = 0
        self._least_level = sizes[members[0]] - 1
        self._take_next = 0
        self._most_start = self._most_end = len(members)
        self._most_level = sizes[members[-1]] + 1
        self._give_next = len(members) - 1
        self.imbalance = sizes[members[-1]] - sizes[members[0]]

    @property
    def is_balanced(self) -> bool:
        """Whether a move would no longer make it better."""
        return self._most_level - self._least_level <= 1

    def next_least_loaded(self) -> int:
        """The member that is to get a partition; it is taken to have got it."""
        members = self._members
        if self._take_next >= self._least_end:
            self._least_level += 1
            while (
                self._least_end < len(members)
                and self._sizes[members[self._least_end]] == self._least_level
            ):
                self._least_end += 1
            self._take_next = 0
        self._take_next += 1
        return members[self._take_next - 1]

    def next_most_loaded(self) -> int | None:
        """The member that is to give a partition up, taken to have done so; None if nobody can."""
        members = self._members
        if self._give_next < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # Nobody in the range had anything to give: begin with who stands before it.
                self._most_level = self._sizes[members[self._most_start - 1]]
            else:
                self._most_level -= 1
            while (
                self._most_start > 0
                and self._sizes[members[self._most_start - 1]] == self._most_level
            ):
                self._most_start -= 1
            self._give_next = self._most_end - 1
        if self._give_next < 0:
            return None
        self._give_next -= 1
        return members[self._give_next + 1]

    def exclude_most_loaded(self) -> None:
        """Whom `next_most_loaded` named has no partition of this topic to give."""
        members = self._members
        index, end = self._give_next + 1, self._most_end - 1
        members[index], members[end] = members[end], members[index]
        self._most_end = end


def assign_homogeneous(
    group: GroupSpec, partition_counts: Mapping[bytes, int]
) -> dict[str, NewAssignment]:
    """The target assignment; see `Assignor.assign`. The group has a member at least."""
    topic_ids = sorted(next(iter(group.members.values())).topic_ids)
    if not topic_ids:
        return {}
    unassigned = _unassigned_partitions(group, topic_ids, partition_counts)
    share, odd = divmod(
        sum(partition_counts[topic_id] for topic_id in topic_ids), len(group.members)
    )
    target: dict[str, NewAssignment] = {}
    unfilled: list[tuple[str, int]] = []
    left = len(group.members)
    subscribed = frozenset(topic_ids)
    for member_id, member in group.members.items():
        takes_odd = odd > 0
        kept, revoked, quota = _keep(member.assignment, subscribed, share + takes_odd)
        unassigned += revoked
        if takes_odd and quota > 0 and left > odd:
            # One after it may have more to keep: the odd partitions go to those.
            quota -= 1
            takes_odd = False
        odd -= takes_odd
        left -= 1
        target[member_id] = kept
        if quota > 0:
            unfilled.append((member_id, quota))
    _fill(target, unfilled, unassigned)
    return target


def _unassigned_partitions(
    group: GroupSpec, topic_ids: Sequence[bytes], partition_counts: Mapping[bytes, int]
) -> list[tuple[bytes, int]]:
    """What no member has; topics in order, and partitions within each."""
    assigned: dict[bytes, set[int]] = {}
    for member in group.members.values():
        for topic_id, partitions in member.assignment.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    unassigned: list[tuple[bytes, int]] = []
    for topic_id in topic_ids:
        count = partition_counts.get(topic_id)
        if count is None:
            raise AssignorError(f"members subscribe to topic {topic_id.hex()}: there is none")
        taken = assigned.get(topic_id, ())
        unassigned += [(topic_id, number) for number in range(count) if number not in taken]
    return unassigned


def _keep(
    assignment: Assignment, subscribed: Set[bytes], quota: int
) -> tuple[NewAssignment, list[tuple[bytes, int]], int]:
    """What a member keeps, what is taken from it, and how many partitions it could still get."""
    kept: NewAssignment = {}
    revoked: list[tuple[bytes, int]] = []
    for topic_id, partitions in sorted(assignment.items()):
        if topic_id not in subscribed:
            continue
        if len(partitions) <= quota:
            kept[topic_id] = frozenset(partitions)
            quota -= len(partitions)
            continue
        ordered = sorted(partitions)
        if quota > 0:
            kept[topic_id] = frozenset(ordered[:quota])
        revoked += [(topic_id, number) for number in ordered[quota:]]
        quota = 0
    return kept, revoked, quota


def _fill(
    target: dict[str, NewAssignment],
    unfilled: Sequence[tuple[str, int]],
    unassigned: Sequence[tuple[bytes, int]],
) -> None:
    start = 0
    for member_id, quota in unfilled:
        given: dict[bytes, set[int]] = {}
        for topic_id, number in unassigned[start : start + quota]:
            given.setdefault(topic_id, set()).add(number)
        start += quota
        assignment = target[member_id]
        for topic_id, numbers in given.items():
            assignment[topic_id] = assignment.get(topic_id, frozenset()) | numbers
    if start < len(unassigned):
        raise AssignorError(f"{len(unassigned) - start} partitions were left over")


ROUNDS_MAX = 16
"""Each round about halves what is out of balance, where subscriptions overlap; else one is
enough, and a second one sees that."""

NO_OWNER = -1


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
            topic_id: list(repeat(NO_OWNER, partition_counts[topic_id]))
            for topic_id in self._subscribers
        }
        self._sizes = [0] * len(group.members)
        self._topic_ids = sorted(self._subscribers, key=self._scarcest_first)

    def _scarcest_first(self, topic_id: bytes) -> tuple[float, int, bytes]:
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
            unassigned = [number for number, owner in enumerate(owners) if owner == NO_OWNER]
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
        if before != NO_OWNER:
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


class UniformAssignor:
    """Kafka's `uniform`, the one that a group gets when no member requests another."""

    name = "uniform"

    def assign(
        self, group: GroupSpec, partition_counts: Mapping[bytes, int]
    ) -> dict[str, NewAssignment]:
        """The target assignment; see `Assignor.assign`."""
        if not group.members:
            return {}
        group = without_overlaps(group)
        if group.is_homogeneous:
            return assign_homogeneous(group, partition_counts)
        return assign_heterogeneous(group, partition_counts)

"""The uniform assignment of members that all subscribe to the same topics.

Each member may keep as many partitions as its share; what is above that, and what nobody
has, fills up those below theirs, in order. Where topics stand in a hash table's order in
Kafka, they stand in their ids' here. Source: Kafka's `UniformHomogeneousAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from .assignor import Assignment, AssignorError, GroupSpec, NewAssignment


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
        kept, revoked, room = _keep(member.assignment, subscribed, share + takes_odd)
        unassigned += revoked
        if takes_odd and room > 0 and left > odd:
            # One after it may have more to keep: the odd partitions go to those.
            room -= 1
            takes_odd = False
        odd -= takes_odd
        left -= 1
        target[member_id] = kept
        if room > 0:
            unfilled.append((member_id, room))
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
    assignment: Assignment, subscribed: Set[bytes], room: int
) -> tuple[NewAssignment, list[tuple[bytes, int]], int]:
    """What a member keeps, what is taken from it, and how many partitions it could still get."""
    kept: NewAssignment = {}
    revoked: list[tuple[bytes, int]] = []
    for topic_id, partitions in sorted(assignment.items()):
        if topic_id not in subscribed:
            continue
        if len(partitions) <= room:
            kept[topic_id] = frozenset(partitions)
            room -= len(partitions)
            continue
        ordered = sorted(partitions)
        if room > 0:
            kept[topic_id] = frozenset(ordered[:room])
        revoked += [(topic_id, number) for number in ordered[room:]]
        room = 0
    return kept, revoked, room


def _fill(
    target: dict[str, NewAssignment],
    unfilled: Sequence[tuple[str, int]],
    unassigned: Sequence[tuple[bytes, int]],
) -> None:
    start = 0
    for member_id, room in unfilled:
        given: dict[bytes, set[int]] = {}
        for topic_id, number in unassigned[start : start + room]:
            given.setdefault(topic_id, set()).add(number)
        start += room
        assignment = target[member_id]
        for topic_id, numbers in given.items():
            assignment[topic_id] = assignment.get(topic_id, frozenset()) | numbers
    if start < len(unassigned):
        raise AssignorError(f"{len(unassigned) - start} partitions were left over")

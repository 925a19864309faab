"""The range assignor: neighbouring partitions, and the same numbers of every topic.

Each topic's partitions are cut into as many ranges as it has subscribers, the longer ones
first. Where members subscribe alike and topics have as many partitions, partition n of every
topic goes to the same member, which is what joins of topics need. Static members stand first,
ordered by instance id, so that one that comes back under another member id gets the same
ranges. Source: Kafka's `RangeAssignor`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .assignor import AssignorError, GroupSpec, MemberSpec, NewAssignment


class RangeAssignor:
    """Kafka's `range`; it does not look at what members had before."""

    name = "range"

    def assign(
        self, group: GroupSpec, partition_counts: Mapping[bytes, int]
    ) -> dict[str, NewAssignment]:
        """The target assignment; see `Assignor.assign`."""
        subscribers: dict[bytes, list[str]] = {}
        ordered = sorted(group.members.items(), key=_static_first)
        if ordered and group.is_homogeneous:
            all_of_them = [member_id for member_id, _ in ordered]
            subscribers = dict.fromkeys(ordered[0][1].topic_ids, all_of_them)
        else:
            for member_id, member in ordered:
                for topic_id in member.topic_ids:
                    subscribers.setdefault(topic_id, []).append(member_id)
        target: dict[str, NewAssignment] = {member_id: {} for member_id, _ in ordered}
        for topic_id, member_ids in subscribers.items():
            count = partition_counts.get(topic_id)
            if count is None:
                raise AssignorError(f"a member subscribes to topic {topic_id.hex()}: there is none")
            _cut(topic_id, count, member_ids, target)
        return target


def _static_first(item: tuple[str, MemberSpec]) -> tuple[bool, bytes]:
    member_id, member = item
    is_dynamic = member.instance_id is None
    # Java compares strings by UTF-16 units, and so must whoever wants its order.
    return is_dynamic, (member.instance_id or member_id).encode("utf-16-be", "surrogatepass")


def _cut(
    topic_id: bytes, count: int, member_ids: list[str], target: dict[str, NewAssignment]
) -> None:
    quota, longer = divmod(count, len(member_ids))
    start = 0
    for index, member_id in enumerate(member_ids):
        if start == count:
            break
        end = start + quota + (index < longer)
        target[member_id][topic_id] = frozenset(range(start, end))
        start = end

"""The input and the output of an assignor.

An assignor is a function of members and topics: no clock, no rng, no log. Topics are
named by their ids. Source: Kafka's `PartitionAssignor`, `GroupSpec` and `MemberSubscription`
(KIP-848).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple, Protocol

Assignment = Mapping[bytes, Set[int]]
"""What one member has: partitions by topic id. A topic without partitions is not in it."""

NOTHING: Assignment = {}

NewAssignment = dict[bytes, frozenset[int]]
"""What an assignor gives one member; the partitions it keeps are the same sets as before."""


class MemberSpec(NamedTuple):
    """One member, as an assignor sees it.

    Attributes:
        topic_ids: the topics that it subscribes to and that exist, by name and by regular
            expression.
        assignment: what it had in the last target assignment, of topics that exist no longer
            too.
        instance_id: of a static member, else None.
        rack_id: the client's rack, if known; neither of Kafka's assignors looks at it.
    """

    topic_ids: Set[bytes]
    assignment: Assignment = NOTHING
    instance_id: str | None = None
    rack_id: str | None = None


class GroupSpec(NamedTuple):
    """The members of a group, by member id.

    Their order counts where members are equal: who stands first gets the odd partition.
    """

    members: Mapping[str, MemberSpec]

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        subscriptions = iter(self.members.values())
        first = next(subscriptions, None)
        return first is None or all(member.topic_ids == first.topic_ids for member in subscriptions)


def without_overlaps(group: GroupSpec) -> GroupSpec:
    """The group where each partition is one member's: the first's that claims it.

    A log may say otherwise of former targets, if its end was lost or another program wrote it.
    """
    claimed: dict[bytes, set[int]] = {}
    claims: dict[bytes, int] = {}
    for member in group.members.values():
        for topic_id, partitions in member.assignment.items():
            claimed.setdefault(topic_id, set()).update(partitions)
            claims[topic_id] = claims.get(topic_id, 0) + len(partitions)
    disputed = {
        topic_id for topic_id, partitions in claimed.items() if len(partitions) < claims[topic_id]
    }
    if not disputed:
        return group
    members: dict[str, MemberSpec] = {}
    taken: dict[bytes, frozenset[int]] = dict.fromkeys(disputed, frozenset())
    for member_id, member in group.members.items():
        assignment = dict(member.assignment)
        for topic_id in disputed & assignment.keys():
            own = frozenset(assignment.pop(topic_id)) - taken[topic_id]
            taken[topic_id] |= own
            if own:
                assignment[topic_id] = own
        members[member_id] = member._replace(assignment=assignment)
    return GroupSpec(members)


class AssignorError(Exception):
    """No assignment can be made: a fault of the caller, not of a client."""


class Assignor(Protocol):
    """Assigns the partitions of a group's topics to its members."""

    @property
    def name(self) -> str:
        """What clients call it (`group.remote.assignor`)."""

    def assign(
        self, group: GroupSpec, partition_counts: Mapping[bytes, int]
    ) -> dict[str, NewAssignment]:
        """The target assignment: each partition of each subscribed topic to one subscriber.

        Args:
            group: the members.
            partition_counts: by topic id, of all topics that any member subscribes to.

        Returns:
            By member id; a member without a partition has an empty one or is not in it.

        Raises:
            AssignorError: a member subscribes to a topic that is not in `partition_counts`.
        """

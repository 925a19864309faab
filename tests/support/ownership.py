"""Who owned which partition of a topic when, told by the members of a group; says what is wrong.

A member tells what its client library tells it: partitions assigned, revoked, lost. From that
the checker reconstructs ownership twice: by time (a partition is a member's from its callback
of assignment to that of revocation) and by generation (what a member owns after an assignment
is its own in that generation, or member epoch). In both no partition may have two owners, and
when the group has settled none may be without one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Set
from enum import Enum
from typing import NamedTuple


class Change(Enum):
    """What befalls a member."""

    ASSIGNED = "assigned"
    REVOKED = "revoked"
    """Told before anybody else may own the partitions."""
    LOST = "lost"
    """Told late: the coordinator gave the member up before, and others may own them already."""
    LEFT = "left"
    """It closes: nothing is its own from here on, whatever its library still says."""


class OwnershipEvent(NamedTuple):
    """One callback of one member.

    Attributes:
        at_ns: when, by a clock that all members share.
        member: its name; each joining has one of its own.
        change: which callback.
        partitions: those it is about; of one topic. Empty for LEFT, which is about all.
        generation: of the group, or the member's epoch; -1 where it is not told.
    """

    at_ns: int
    member: str
    change: Change
    partitions: frozenset[int] = frozenset()
    generation: int = -1


class Violation(NamedTuple):
    """Something that must not be.

    Attributes:
        kind: "two owners at once", "two owners in one generation", "unowned when settled" or
            "assigned what it owns".
        text: who, what and when.
    """

    kind: str
    text: str


class _Overlap(NamedTuple):
    first: str
    first_generation: int
    second: str
    second_generation: int
    partition: int
    at_ns: int


class Ownership:
    """A record of events, without clock or threads; asked at any time.

    Args:
        partitions: of the topic that the group reads.
        instance_of: what a member is in a generation: two that follow each other as one static
            instance are one owner there.
    """

    def __init__(
        self, partitions: Iterable[int], instance_of: Callable[[str], str] = lambda name: name
    ) -> None:
        self.partitions = frozenset(partitions)
        self._instance_of = instance_of
        self.events: list[OwnershipEvent] = []
        self._owned: dict[str, set[int]] = {}
        self._left: set[str] = set()
        self._settled_at_ns: list[int] = []

    def tell(self, event: OwnershipEvent) -> bool:
        """Add an event; those of one member come in their order.

        Returns:
            Whether it counts. What a member tells after it left does not, but for a loss: it had
            been given up before, and left before its library knew.
        """
        if event.member in self._left and event.change is not Change.LOST:
            return False
        if event.change is Change.LEFT:
            self._left.add(event.member)
        self.events.append(event)
        _apply(self._owned, event)
        return True

    def owned_by(self, member: str) -> frozenset[int]:
        """What a member owns after all that was told."""
        return frozenset(self._owned.get(member, ()))

    def generations(self) -> list[int]:
        """The generations in which anything was assigned, in ascending order."""
        return sorted({e.generation for e in self.events if e.change is Change.ASSIGNED})

    # -- settling ------------------------------------------------------------------------

    def why_not_settled(self, members: Collection[str]) -> str:
        """What is missing until the group has settled on these members; empty if nothing is.

        It has settled when each partition has one owner, all of them are of `members`, and the
        shares differ by one at most.
        """
        shares = {member: self.owned_by(member) for member in members}
        counts = [len(share) for share in shares.values()]
        unowned = self.partitions.difference(*shares.values())
        if members and unowned:
            return f"unowned: {sorted(unowned)}"
        if sum(counts) > len(self.partitions):
            return f"owned twice, of {shares}"
        if counts and max(counts) - min(counts) > 1:
            return f"uneven: {shares}"
        return ""

    def mark_settled(self, at_ns: int) -> None:
        """The group is at rest at this time, and has members."""
        self._settled_at_ns.append(at_ns)

    # -- judging -------------------------------------------------------------------------

    def violations(self) -> list[Violation]:
        """All that is wrong in what was told so far."""
        # A stable sort: the order of one member's events stays at equal times.
        events = sorted(self.events, key=lambda event: event.at_ns)
        return [
            *_two_at_once(events),
            *self._two_in_one_generation(events),
            *self._unowned_when_settled(events),
        ]

    def _two_in_one_generation(self, events: list[OwnershipEvent]) -> list[Violation]:
        owned: dict[str, set[int]] = {}
        claims: dict[tuple[int, int], str] = {}
        found = []
        for event in events:
            _apply(owned, event)
            if event.change is not Change.ASSIGNED or event.generation < 0:
                continue
            instance = self._instance_of(event.member)
            for partition in sorted(owned[event.member]):
                claimed_by = claims.setdefault((event.generation, partition), instance)
                if claimed_by != instance:
                    text = (
                        f"partition {partition} in generation {event.generation}: "
                        f"{claimed_by} and {instance}"
                    )
                    found.append(Violation("two owners in one generation", text))
        return found

    def _unowned_when_settled(self, events: list[OwnershipEvent]) -> list[Violation]:
        found = []
        for settled_at_ns in self._settled_at_ns:
            owned: dict[str, set[int]] = {}
            for event in events:
                if event.at_ns <= settled_at_ns:
                    _apply(owned, event)
            unowned = self.partitions.difference(*owned.values())
            if unowned:
                text = f"partitions {sorted(unowned)} at {settled_at_ns}"
                found.append(Violation("unowned when settled", text))
        return found


def _apply(owned: dict[str, set[int]], event: OwnershipEvent) -> None:
    mine = owned.setdefault(event.member, set())
    if event.change is Change.ASSIGNED:
        mine |= event.partitions
    elif event.change is Change.LEFT:
        mine.clear()
    else:
        mine -= event.partitions


def _two_at_once(events: list[OwnershipEvent]) -> list[Violation]:
    """Overlaps in time; one that a loss told late explains is none."""
    owners: dict[int, dict[str, int]] = defaultdict(dict)  # partition: member: generation
    overlaps: list[_Overlap] = []
    found = []
    for event in events:
        if event.change is Change.ASSIGNED:
            for partition in sorted(event.partitions):
                others = owners[partition]
                if event.member in others:
                    text = f"{event.member}, partition {partition} at {event.at_ns}"
                    found.append(Violation("assigned what it owns", text))
                overlaps += [
                    _Overlap(
                        other,
                        generation,
                        event.member,
                        event.generation,
                        partition,
                        event.at_ns,
                    )
                    for other, generation in others.items()
                    if other != event.member
                ]
                others[event.member] = event.generation
            continue
        ended = {
            partition
            for partition, members in owners.items()
            if event.member in members
            and (event.change is Change.LEFT or partition in event.partitions)
        }
        for partition in ended:
            del owners[partition][event.member]
        if event.change is Change.LOST:
            overlaps = [o for o in overlaps if not _is_explained(o, event.member, event.partitions)]
    found += [
        Violation(
            "two owners at once",
            f"partition {o.partition}: {o.first} (generation {o.first_generation}) still, "
            f"{o.second} (generation {o.second_generation}) from {o.at_ns} on",
        )
        for o in overlaps
    ]
    return found


def _is_explained(overlap: _Overlap, lost_by: str, partitions: Set[int]) -> bool:
    """Whether the member that owned it first had been given up when the second came."""
    return (
        overlap.first == lost_by
        and overlap.partition in partitions
        and overlap.second_generation > overlap.first_generation
    )

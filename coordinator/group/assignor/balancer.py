"""Who of a topic's subscribers is to get a partition next, and who is to give one up.

The subscribers stand ordered by how many partitions they have. At the front is the range of
those who have least, all of one level: once each of them got one, the level rises by one and
the range takes in whoever stands there. At the back is the range of those who have most, which
falls in the same way. When the levels are one apart, or less, nothing is left to move.
Source: Kafka's `UniformHeterogeneousAssignmentBuilder.MemberAssignmentBalancer`.
"""

from __future__ import annotations

from collections.abc import Sequence


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

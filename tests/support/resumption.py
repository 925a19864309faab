"""Whether the members of a group read all records, each owner from where the last committed.

Members tell their commits (before they send them, and when they are acknowledged), when a
partition became theirs, and each record they read. What was told before is known to be before.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from .ownership import Violation


class Commit(NamedTuple):
    """A committed position, and the words that go with it."""

    offset: int
    metadata: str


class _Turn(NamedTuple):
    """What holds while a member begins to own a partition."""

    member: str
    acknowledged: Commit | None
    """What the coordinator must know by then."""


class Resumption:
    """Commits and reads of the partitions of one topic; records begin at offset 0."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, Commit] = {}
        """The latest commit of each partition that was answered without an error."""
        self.resumed = 0
        """How often an owner began where another had committed."""
        self._attempted: dict[int, set[int]] = defaultdict(lambda: {0})
        self._read: dict[int, set[int]] = defaultdict(set)
        self._turns: dict[int, _Turn] = {}
        self._positions: dict[tuple[str, int], int] = {}
        self._violations: list[Violation] = []

    def tell_owned(self, member: str, partition: int) -> None:
        """A partition was assigned to a member."""
        self._turns[partition] = _Turn(member, self.acknowledged.get(partition))

    def tell_attempt(self, partition: int, commit: Commit) -> None:
        """A commit is about to be sent."""
        self._attempted[partition].add(commit.offset)

    def tell_acknowledged(self, partition: int, commit: Commit) -> None:
        """A commit was answered without an error."""
        self.acknowledged[partition] = commit

    def tell_read(self, member: str, partition: int, offset: int) -> None:
        """A record was handed to the member's application."""
        self._read[partition].add(offset)
        position = self._positions.get((member, partition), 0)
        self._positions[member, partition] = offset + 1
        turn = self._turns.get(partition)
        if turn is None or turn.member != member:
            return
        del self._turns[partition]
        committed = 0 if turn.acknowledged is None else turn.acknowledged.offset
        if offset < committed:
            text = (
                f"{member} begins partition {partition} at {offset}, committed was {committed}, "
                f"and itself it had read up to {position}"
            )
            self._violations.append(Violation("commit forgotten", text))
        elif offset != position and offset not in self._attempted[partition]:
            # Clients may remember where they were if a partition comes back to them.
            text = f"{member} begins partition {partition} at {offset}, which nobody committed"
            self._violations.append(Violation("resumed elsewhere", text))
        else:
            self.resumed += committed > 0

    def read_count(self) -> int:
        """How many different records were read."""
        return sum(map(len, self._read.values()))

    def violations(self, ends: dict[int, int]) -> list[Violation]:
        """All that is wrong.

        Args:
            ends: the log end offset of each partition.
        """
        lost = [
            Violation("not read", f"partition {partition}: {missing[:10]}, {len(missing)} in all")
            for partition, end in ends.items()
            if (missing := sorted(set(range(end)) - self._read[partition]))
        ]
        return self._violations + lost

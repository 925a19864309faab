"""What must hold of a topic that workers wrote exactly once: held against what readers saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Place = tuple[int, int]
"""A partition and an offset."""


class Output(NamedTuple):
    """What a worker wrote for one record of the input; see `exactly_once_worker.value_of`.

    Attributes:
        source: where the record is in the input.
        attempt: which of that worker's transactions wrote it.
        is_doomed: the worker meant to give that transaction up.
        value: the record's.
    """

    source: Place
    attempt: int
    is_doomed: bool
    value: bytes


class Violation(NamedTuple):
    """Something that exactly once excludes."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def parse_output(value: bytes) -> Output:
    """The parts of a value that a worker wrote."""
    partition, offset, attempt, fate, rest = value.split(b":", 4)
    return Output((int(partition), int(offset)), int(attempt), fate == b"doomed", rest)


class ExactlyOnceChecker:
    """Compares reads of the output with the input.

    Kinds of violation: "duplicate" (a record of the input has more than one output), "lost"
    (none), "leak" (an output that was given up is seen), "stranger" (an output of no record),
    "order" (outputs of a partition are not in the order of its input), "changed" (two readers
    saw different records at one offset, or one saw what the other did not).

    Args:
        inputs: the input's values by place.

    Attributes:
        violations: found so far.
    """

    def __init__(self, inputs: Mapping[Place, bytes]) -> None:
        self.violations: list[Violation] = []
        self._inputs = inputs

    def kinds(self) -> set[str]:
        """Of all violations."""
        return {each.kind for each in self.violations}

    def committed(self, reader: str, read: Mapping[Place, bytes]) -> None:
        """Check what a read_committed reader saw, from the start to the end.

        Args:
            reader: a name for messages.
            read: what it saw at each place of the output.
        """
        outputs = {place: parse_output(value) for place, value in sorted(read.items())}
        counts = Counter(each.source for each in outputs.values())
        for source, count in counts.items():
            if count > 1:
                where = [place for place, each in outputs.items() if each.source == source]
                self._found("duplicate", f"{reader}: {source} is written {count} times: {where}")
        for source in self._inputs.keys() - counts.keys():
            self._found("lost", f"{reader}: {source} has no output")
        last: dict[int, int] = {}
        for place, output in outputs.items():
            if output.is_doomed:
                self._found("leak", f"{reader}: {output} at {place} was given up")
            if self._inputs.get(output.source) != output.value or output.source[0] != place[0]:
                self._found("stranger", f"{reader}: {output} at {place}")
            if output.source[1] < last.get(place[0], -1):
                self._found("order", f"{reader}: {output} at {place} comes after {last[place[0]]}")
            last[place[0]] = output.source[1]

    def agree(
        self, one: str, first: Mapping[Place, bytes], other: str, second: Mapping[Place, bytes]
    ) -> None:
        """Check that two readers saw the same."""
        if first != second:
            different = sorted(
                place
                for place in first.keys() | second.keys()
                if first.get(place) != second.get(place)
            )
            self._found("changed", f"{one} and {other} differ at {different[:10]}")

    def uncommitted(self, committed: Mapping[Place, bytes], read: Mapping[Place, bytes]) -> None:
        """Check that a read_uncommitted reader saw what a read_committed one saw, and more."""
        missing = [place for place, value in committed.items() if read.get(place) != value]
        if missing:
            self._found("changed", f"a read_uncommitted reader does not see {sorted(missing)[:10]}")
        if len(read) <= len(committed):
            self._found(
                "changed", "a read_uncommitted reader sees no more than a read_committed one"
            )

    def report(self, most: int = 20) -> str:
        """The violations, one a line."""
        counts = Counter(each.kind for each in self.violations)
        lines: Iterable[object] = [dict(counts), *self.violations[:most]]
        return "\n".join(map(str, lines))

    def _found(self, kind: str, text: str) -> None:
        self.violations.append(Violation(kind, text))

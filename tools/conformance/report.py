"""What a run of the scenarios has shown, as a table and a list of what is not explained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...protocol.api_keys import ApiKey
from .explanations import Explained, Explanation, api_name
from .runner import AnswerDifference, Result

SLOW_SECONDS = 2.0
SLOW_MAX = 10
EXAMPLES_MAX = 3
"""How many runs are named for one difference that occurs in many."""


class Counts(NamedTuple):
    """One row of the table."""

    scenarios: int
    runs: int
    answers: int
    explained: int
    unexplained: int


class ConformanceReport:
    """What came of all runs.

    Args:
        results: of every run.
        explained: the explanations; it learns which of them are needed.
        is_whole: whether every scenario was played, so that no explanation may be left over.
    """

    def __init__(self, results: Sequence[Result], explained: Explained, *, is_whole: bool) -> None:
        self._results = results
        self._explained: list[AnswerDifference] = []
        self._unexplained: list[AnswerDifference] = []
        for result in results:
            for found in result.found:
                row = explained.find(found.api_key, found.difference)
                (self._unexplained if row is None else self._explained).append(found)
        self.unneeded: list[Explanation] = list(explained.unneeded()) if is_whole else []

    @property
    def unexplained(self) -> list[AnswerDifference]:
        """The differences that no row explains."""
        return self._unexplained

    @property
    def is_conformant(self) -> bool:
        """Whether every difference is explained, and every explanation needed."""
        return not self._unexplained and not self.unneeded

    def counts(self) -> dict[ApiKey, Counts]:
        """The table's rows: what was played about each API, and what differed there."""
        runs: dict[ApiKey, list[Result]] = defaultdict(list)
        for result in self._results:
            runs[result.run.scenario.api_key].append(result)
        return {key: self._counted(runs[key]) for key in sorted(runs)}

    def _counted(self, results: Iterable[Result]) -> Counts:
        mine = {result.run: result for result in results}
        return Counts(
            len({run.scenario for run in mine}),
            len(mine),
            sum(result.answers for result in mine.values()),
            sum(found.run in mine for found in self._explained),
            sum(found.run in mine for found in self._unexplained),
        )

    def lines(self) -> list[str]:
        """The report, line by line."""
        rows = self.counts()
        total = Counts(*(sum(column) for column in zip(*rows.values(), strict=True)))
        table = [_row(("API", *Counts._fields))]
        table += [_row((api_name(key), *map(str, row))) for key, row in rows.items()]
        table += [_row(("all", *map(str, total)))]
        return [
            *table,
            "",
            *self._slow(),
            *self._complaints(),
            f"{total.scenarios} scenarios in {total.runs} runs, {total.answers} answers compared; "
            f"differences: {total.explained} explained, {total.unexplained} unexplained",
        ]

    def _slow(self) -> list[str]:
        slow = [each for each in self._results if max(each.seconds) > SLOW_SECONDS]
        slow.sort(key=lambda each: max(each.seconds), reverse=True)
        return [
            f"slow: {each.run}: {each.seconds[0]:.1f} s with Kafka, {each.seconds[1]:.1f} s here"
            for each in slow[:SLOW_MAX]
        ]

    def _complaints(self) -> list[str]:
        alike: dict[tuple[str, str, str, str], list[AnswerDifference]] = defaultdict(list)
        for found in self._unexplained:
            difference = found.difference
            key = (api_name(found.api_key), difference.field, *difference[1:])
            alike[key].append(found)
        lines = []
        for (api, field, expected, actual), where in alike.items():
            lines.append(f"unexplained: {api} {field}: Kafka {expected}, odradek {actual}")
            lines += [f"    {each.run} (answer v{each.version})" for each in where[:EXAMPLES_MAX]]
            if len(where) > EXAMPLES_MAX:
                lines.append(f"    and {len(where) - EXAMPLES_MAX} more")
        lines += [f"no scenario needs this explanation: {row}" for row in self.unneeded]
        return [*lines, ""] if lines else []


def _row(cells: Sequence[str]) -> str:
    name, *numbers = cells
    return f"{name:<28}" + "".join(f"{number:>13}" for number in numbers)

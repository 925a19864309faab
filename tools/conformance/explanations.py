"""The differences that are meant: the rows of a table in docs/differences.md.

A row names one API, one field, what each of the two brokers says there, and why. It covers nothing
but that: a row with a wildcard is refused, and so is one that no scenario needs any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ...protocol.api_keys import ApiKey
from ...testing.comparison.differences import Difference

HEADER = ("API", "Field", "Kafka 4.3.1", "odradek", "Reason")
WILDCARD = re.compile(r"[*?]|\.\.\.|\b(?:any|all|every)\b", re.IGNORECASE)
REASON_WORDS_MIN = 3


class ExplanationError(Exception):
    """The table is missing, or a row of it is not as it should be; the message names it."""


class Explanation(NamedTuple):
    """One row.

    Attributes:
        api: the API, by the name that the protocol has for it.
        field: the path to the field, without numbers.
        expected: what Kafka says there.
        actual: what odradek says there.
        reason: why.
        line: where it stands in its file.
    """

    api: str
    field: str
    expected: str
    actual: str
    reason: str
    line: int

    def covers(self, api_key: ApiKey, difference: Difference) -> bool:
        """Whether it explains a difference in an answer of an API."""
        return (self.api, self.field, self.expected, self.actual) == (
            api_name(api_key),
            difference.field,
            difference.expected,
            difference.actual,
        )

    def __str__(self) -> str:
        return f"line {self.line}: {self.api} {self.field}: {self.expected} / {self.actual}"


def api_name(api_key: ApiKey) -> str:
    """The name of an API as the protocol's documentation writes it."""
    return "".join(word.capitalize() for word in api_key.name.split("_"))


def read_explanations(path: Path) -> list[Explanation]:
    """The rows of the table in a Markdown file.

    Raises:
        ExplanationError: there is no such table, or a row is malformed, says nothing, has a
            wildcard or stands there twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ExplanationError(f"{path} cannot be read: {error.strerror}") from error
    lines = list(enumerate(text.splitlines(), start=1))
    starts = [number for number, line in lines if tuple(_cells(line)) == HEADER]
    if len(starts) != 1:
        columns = " | ".join(HEADER)
        raise ExplanationError(f"{path} needs one table with the columns {columns}")
    rows = []
    for number, line in lines[starts[0] + 1 :]:
        if not line.startswith("|"):
            break
        rows.append(_explanation(path, number, _cells(line)))
    _require_once(path, rows)
    return rows


def _explanation(path: Path, number: int, cells: list[str]) -> Explanation:
    place = f"{path}:{number}"
    if len(cells) != len(HEADER) or not all(cells):
        raise ExplanationError(f"{place}: a row has {len(HEADER)} cells, and something in each")
    api, field, expected, actual, reason = cells
    if api not in {api_name(key) for key in ApiKey}:
        raise ExplanationError(f"{place}: there is no API {api}")
    for cell in (api, field, expected, actual):
        if WILDCARD.search(cell):
            raise ExplanationError(f"{place}: {cell} is a wildcard; name what it is")
    if len(reason.split()) < REASON_WORDS_MIN:
        raise ExplanationError(f"{place}: {reason} is no reason")
    return Explanation(api, field, expected, actual, reason, number)


def _require_once(path: Path, rows: Iterable[Explanation]) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for row in rows:
        first = seen.setdefault(row[:4], row.line)
        if first != row.line:
            raise ExplanationError(f"{path}:{row.line}: the same stands in line {first}")


def _cells(line: str) -> list[str]:
    return [_plain(cell) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _plain(cell: str) -> str:
    return cell.strip().strip("`").replace("\\|", "|")


class Explained:
    """Which differences are explained, and which explanations were needed.

    Args:
        rows: the table.
    """

    def __init__(self, rows: Iterable[Explanation]) -> None:
        self._rows = list(rows)
        self._needed: set[Explanation] = set()

    def find(self, api_key: ApiKey, difference: Difference) -> Explanation | None:
        """The row that explains a difference, which is then one that is needed."""
        for row in self._rows:
            if row.covers(api_key, difference):
                self._needed.add(row)
                return row
        return None

    def unneeded(self) -> Iterator[Explanation]:
        """The rows that have explained nothing so far."""
        return (row for row in self._rows if row not in self._needed)

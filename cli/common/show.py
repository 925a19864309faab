"""How the commands show things: tables for people, JSON lines for programs.

Names come from whoever made them: what is not printable in them is escaped, see `escaped`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Annotated, Any
from unicodedata import east_asian_width

from ...common.escaping import escaped, escaped_json
from ..declarations import Option

GAP = "   "
CELL_COLUMNS_MIN = 8
PIPE_COLUMNS = 250
TERM_IS_DUMB = os.environ.get("TERM", "dumb") == "dumb"

JsonOutput = Annotated[bool, Option("--json", help="One JSON object a line, for other programs.")]


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    title: str | None = None,
    legend: str | None = None,
    empty: str = "nothing to show",
) -> None:
    """A table on standard output; columns of numbers stand to the right.

    Without rows, `empty` says so on standard error. `legend` explains the table below it.
    """
    lines = [list(row) for row in rows]
    if not lines:
        note(empty)
        return
    numbers = [
        all(isinstance(line[at], int | float | None) for line in lines)
        for at in range(len(columns))
    ]
    cells = [list(columns), *([_cell(cell) for cell in line] for line in lines)]
    widths = _widths(cells)
    if title:
        print(styled(BOLD, escaped(title)))
    rule = "─" if sys.stdout.encoding.lower().startswith("utf") else "-"
    for index, row in enumerate(cells):
        for line in _lines(row, widths, numbers):
            print(styled(BOLD, line) if index == 0 else line)
        if index == 0:
            print(" " + rule * (sum(widths) + len(GAP) * (len(widths) - 1) + 2))
    if legend:
        for text in legend.split("\n"):
            print(styled(DIM, escaped(text)))


def _widths(cells: Sequence[Sequence[str]]) -> list[int]:
    """How wide columns are: as their widest cell, but narrower where a terminal is too narrow."""
    widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]
    if not sys.stdout.isatty():  # a pipe has no width: what reads it sees each row in one line
        return widths
    left = shutil.get_terminal_size().columns - len(GAP) * (len(widths) - 1) - 2
    while sum(widths) > left and max(widths) > CELL_COLUMNS_MIN:
        widths[widths.index(max(widths))] -= 1
    return widths


def _lines(row: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> Iterable[str]:
    """The lines of a row: several, where cells are folded."""
    folded = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
    for parts in zip_longest(*folded, fillvalue=""):
        aligned = (
            " " * (width - _width(part)) + part
            if is_number
            else part + " " * (width - _width(part))
            for part, width, is_number in zip(parts, widths, numbers, strict=True)
        )
        yield f"  {GAP.join(aligned)}".rstrip()


def _folded(cell: str, width: int) -> list[str]:
    if _width(cell) <= width:
        return [cell]
    lines: list[list[str]] = [[]]
    left = width
    for character in cell:
        left -= _width(character)
        if left < 0:
            lines.append([])
            left = width - _width(character)
        lines[-1].append(character)
    return ["".join(line) for line in lines]


def _width(text: str) -> int:
    """How many columns of a terminal a text takes: East Asian characters take two."""
    return (
        len(text) if text.isascii() else sum(1 + (east_asian_width(each) in "WF") for each in text)
    )


BOLD, DIM = "1", "2"


def styled(style: str, text: str) -> str:
    """The text in a style, where a terminal shows it and NO_COLOR does not forbid it."""
    is_plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR") or TERM_IS_DUMB
    return text if is_plain else f"\x1b[{style}m{text}\x1b[0m"


def without_empty_columns(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[list[str], list[list[object]]]:
    """A table without the columns in which there is nothing."""
    kept = [index for index in range(len(columns)) if any(row[index] is not None for row in rows)]
    return [columns[index] for index in kept], [[row[index] for index in kept] for row in rows]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else escaped(str(value))


def show_json(objects: Iterable[dict[str, Any]]) -> None:
    """One object a line on standard output."""
    for entry in objects:
        print(escaped_json(json.dumps(entry, ensure_ascii=False)))


def note(text: str) -> None:
    """A remark beside the output, on standard error."""
    print(escaped(text), file=sys.stderr)

"""How the commands show things: tables for people, JSON lines for programs.

Names come from whoever made them: what is not printable in them is escaped, see `escaped`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from ...common.escaping import escaped, escaped_json

PIPE_COLUMNS = 250

JsonOutput = Annotated[
    bool, typer.Option("--json", help="One JSON object a line, for other programs.")
]


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
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    for index, column in enumerate(columns):
        numbers = all(isinstance(line[index], int | float | None) for line in lines)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for line in lines:
        table.add_row(*(escape(_cell(cell)) for cell in line))
    # A pipe has no width: do not fold lines that another program will read.
    console = Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS)
    if title:
        console.print(f"[bold]{escape(escaped(title))}[/bold]", highlight=False)
    console.print(table)
    if legend:
        for text in legend.split("\n"):
            console.print(f"[dim]{escape(escaped(text))}[/dim]", highlight=False)


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

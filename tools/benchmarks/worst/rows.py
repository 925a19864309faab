"""What was measured of each API, beside the goals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.table import Table

from .answers import in_words

P99_MS_MAX, WAIT_MS_MAX, MEMORY_MB_MAX = 20.0, 100.0, 64.0
"""The goals: of waits on a machine with nothing else to do."""
QUIET_LOAD_MAX = 1.0
"""A machine with less load than this is quiet: waits are then held to the goals, too."""
WITHOUT_ANSWER = "closed"
SUCCESS = "NONE"


@dataclass
class Row:
    """What the worst request of one API and size did.

    Attributes:
        answer_bytes: None: the connection was closed.
        hold_ms: the most that the broker's processor did during one wait of the good client's,
            while the request was sent once.
        codes: error codes in the answer, by name, and how often.
        has_succeeded: whether any request that was tried was answered with more than errors.
        memory_mb: the most that the broker has had, once and repeated, above what it had at idle.
        hold_p99_ms, hold_max_ms: the same while it was repeated.
        p50_ms, p99_ms, max_ms: those waits, whatever the machine did.
    """

    api: str
    shape: str
    count: int
    request_bytes: int
    answer_bytes: int | None
    cpu_ms: float
    hold_ms: float
    codes: dict[str, int] = field(default_factory=dict)
    has_succeeded: bool = False
    memory_mb: float = 0.0
    hold_p99_ms: float = 0.0
    hold_max_ms: float = 0.0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0


class Goal(NamedTuple):
    """The most that a figure of a row may be.

    Attributes:
        is_of_waits: whether it depends on what else the machine does.
    """

    figure: str
    most: float
    is_of_waits: bool = False


GOALS = (
    Goal("memory_mb", MEMORY_MB_MAX),
    Goal("hold_ms", WAIT_MS_MAX),
    Goal("hold_p99_ms", P99_MS_MAX),
    Goal("hold_max_ms", WAIT_MS_MAX),
    Goal("p99_ms", P99_MS_MAX, is_of_waits=True),
    Goal("max_ms", WAIT_MS_MAX, is_of_waits=True),
)
SHOWN = (
    "cpu_ms",
    "memory_mb",
    "hold_ms",
    "hold_p99_ms",
    "hold_max_ms",
    "p50_ms",
    "p99_ms",
    "max_ms",
)
HEADS = ("CPU", "MB", "held", "h99", "hmax", "p50", "p99", "max")


def missed(row: Row, *, judges_waits: bool) -> set[str]:
    """The figures of a row that miss a goal.

    Args:
        row: of one API and size.
        judges_waits: whether the machine was quiet.
    """
    return {
        goal.figure
        for goal in GOALS
        if getattr(row, goal.figure) > goal.most and (judges_waits or not goal.is_of_waits)
    }


def refused_apis(rows: Iterable[Row]) -> list[str]:
    """The APIs of which every request was answered with errors only, or not at all."""
    succeeded: dict[str, bool] = {}
    for row in rows:
        succeeded[row.api] = succeeded.get(row.api, False) or row.has_succeeded
    return [api for api, has_succeeded in succeeded.items() if not has_succeeded]


def table(found: list[Row], title: str, *, judges_waits: bool) -> Table:
    """The rows as a table; what misses a goal is marked."""
    shown = Table(title=title, show_edge=False, pad_edge=False)
    shown.add_column("API")
    shown.add_column("worst request")
    shown.add_column("answered")
    for name in ("bytes", "answer", *HEADS):
        shown.add_column(name, justify="right")
    for row in found:
        shown.add_row(
            row.api,
            f"{row.shape} x {row.count}",
            in_words(row.codes),
            f"{row.request_bytes:,}",
            WITHOUT_ANSWER if row.answer_bytes is None else f"{row.answer_bytes:,}",
            *_figures(row, missed(row, judges_waits=judges_waits)),
        )
    return shown


def _figures(row: Row, marked: set[str]) -> Iterator[str]:
    for figure in SHOWN:
        yield f"{getattr(row, figure):.1f}" + ("!" if figure in marked else "")

"""What `odradek bench` shows: a bar while it runs, a line for each slot, tables at the end."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..common.show import PIPE_COLUMNS, note
from ..log.folders import plural

if TYPE_CHECKING:
    from typing import Self

    from rich.table import Table

    from ...bench.figures import Figures
    from ...bench.loads.load import Load
    from ...bench.report import BenchReport
    from ...bench.run.rounds import Slot

BAR_REFRESHES_A_SECOND = 1
"""As few as look alive: what draws is a process on the machine that is measured."""


class Screen:
    """Progress on standard error; a context manager.

    Args:
        slots: how many there are in all.
    """

    def __init__(self, slots: int) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        self._console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            refresh_per_second=BAR_REFRESHES_A_SECOND,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task("", total=slots)
        self._where = ""

    def begin(self, where: str, load: Load) -> None:
        """A slot begins."""
        self._where = where
        self._bar.update(self._task, description=f"{where}: {load.name}")

    def end(self, slot: Slot) -> None:
        """A slot was measured."""
        from ...bench.figures import UNITS
        from ...bench.report import number

        shown = ", ".join(
            f"{UNITS[name]} {number(slot.figures[name])}" for name in UNITS if name in slot.figures
        )
        self._line(f"{self._where}: {slot.load}: {shown}")
        self._bar.advance(self._task)

    def drop(self, load: Load, why: str) -> None:
        """A load is not run again."""
        self._line(f"{self._where}: {load.name}: not measured: {why}")
        self._bar.advance(self._task)

    def stop(self) -> None:
        """Take the bar away."""
        self._bar.stop()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def _line(self, text: str) -> None:
        self._bar.console.print(text, highlight=False, markup=False, soft_wrap=True)


def show_loads(report: BenchReport) -> None:
    """The table of medians, and what to think of it."""
    from ...bench.figures import UNITS
    from ...bench.report import columns, is_loader_bound, number

    if report.loads:
        names = columns(report.loads)
        table = _table("load", *(UNITS[name] for name in names))
        for load, figures in report.loads.items():
            star = " *" if is_loader_bound(figures) else ""
            table.add_row(load + star, *(number(figures.get(name)) for name in names))
        _print(table)
        note(f"medians of {plural(report.rounds, 'round')} of {report.seconds:g} s")
    if any(is_loader_bound(figures) for figures in report.loads.values()):
        note("* the loader was busy all the time: the broker may be faster than this says")
    if report.again:
        again = plural(report.again, "time")
        note(f"loads were run again {again}, since another process had slowed them")
    if report.slowed:
        note(
            f"this machine was not quiet: {report.slowed} of {len(report.slots)} measurements count"
            " though another process slowed them each time; take the figures for a rough idea"
        )
    for load, why in report.left_out.items():
        note(f"left out: {load}: {why}")


def show_comparison(
    report: BenchReport, earlier: dict[str, Figures], machine: dict[str, str]
) -> None:
    """A table of ratios to an earlier run."""
    from ...bench.figures import UNITS
    from ...bench.report import compared, number

    ratios = list(compared(report.loads, earlier))
    if not ratios:
        note("nothing to compare: the earlier run has none of these loads")
        return
    table = _table("load", "figure", "earlier", "now", "ratio", "")
    for each in ratios:
        values = (number(each.earlier), number(each.now), f"{each.ratio:.2f}")
        table.add_row(each.load, UNITS[each.figure], *values, each.verdict)
    _print(table)
    for key in ("processor", "cores", "memory", "system"):
        if machine.get(key) != report.machine.get(key):
            note(f"the earlier run was on another machine ({key}): these ratios say little")
            break


def _table(first: str, *others: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right")
    return table


def _print(table: Any) -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS).print(table)

"""Tables: all medians and ratios, goals, and a run beside an earlier one."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from ..measure import UNITS
from .goals import ITSELF, judged
from .slots import Medians, changes, figures_of, ratio

VERDICTS = {True: "reached", False: "MISSED", None: "-"}


def show(table: Medians, peers: Sequence[str], console: Console) -> None:
    """Print every median, and ours over the others'."""
    others = [peer for peer in peers if peer != ITSELF] if ITSELF in peers else []
    shown = Table("load", "figure", *peers, *(f"/ {peer}" for peer in others))
    for load, by_peer in table.items():
        for name in figures_of(table, load):
            values = {peer: figures.get(name) for peer, figures in by_peer.items()}
            times = [ratio(values.get(ITSELF), values.get(peer)) for peer in others]
            row = [number(values.get(peer)) for peer in peers]
            shown.add_row(load, _unit(name), *row, *map(_times, times))
    console.print(shown)


def show_goals(table: Medians, console: Console) -> bool:
    """Print each goal beside what was measured; whether each was reached, or its floor held."""
    shown = Table("load", "figure", "beside", "measured", "goal", "floor", "")
    verdicts = judged(table)
    for verdict in verdicts:
        goal, measured, reached = verdict
        beside = "itself" if goal.peer == ITSELF else goal.peer
        target = f"{'<=' if goal.at_most else '>='} {goal.value:.3g}"
        floor = "" if goal.floor is None else f"{goal.floor:.3g}"
        said = "floor held" if verdict.is_held and not reached else VERDICTS[reached]
        shown.add_row(
            *(goal.load, _unit(goal.figure), beside),
            *(number(measured), target, floor, VERDICTS[None] if reached is None else said),
        )
    if verdicts:
        console.print(shown)
    return all(verdict.is_held for verdict in verdicts)


def show_changes(
    earlier: Medians, later: Medians, peers: Sequence[str], name: str, console: Console
) -> None:
    """Print this run's medians over those of an earlier one.

    Args:
        earlier: its medians.
        later: this one's.
        peers: whose.
        name: of the earlier one, for the title.
        console: where to.
    """
    found = {(each.load, each.figure, each.peer): each for each in changes(earlier, later)}
    shown = Table("load", "figure", *peers, title=f"this run over {name} (and that run's median)")
    for load, figure in dict.fromkeys((each.load, each.figure) for each in found.values()):
        cells = []
        for peer in peers:
            change = found.get((load, figure, peer))
            cells.append(f"{_times(change.times)} ({number(change.earlier)})" if change else "-")
        shown.add_row(load, _unit(figure), *cells)
    console.print(shown)


def number(value: float | None) -> str:
    """For people; `-` for none."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _unit(figure: str) -> str:
    return UNITS.get(figure, figure)

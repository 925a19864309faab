"""The table, the ratios beside their goals, a plot and a file of all figures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .goals import GOALS, ITSELF
from .loads import Figures
from .rounds import Slot

UNITS = {
    "rate": "/s",
    "cpu_us": "us CPU",
    "p50_ms": "ms p50",
    "p99_ms": "ms p99",
    "memory_mb": "MB",
    "ready_s": "s",
    "kb_each": "KB each",
    "busy_loss": "of the busy rate lost",
}

Medians = dict[str, dict[str, Figures]]


def show(table: Medians, peers: Sequence[str], console: Console) -> None:
    """Print every median, and ours over the others'."""
    shown = Table("load", "figure", *peers, *(f"/ {peer}" for peer in peers if peer != ITSELF))
    for load, by_peer in table.items():
        names = next(iter(by_peer.values()))
        for name in names:
            values = {peer: figures[name] for peer, figures in by_peer.items()}
            row = [load, UNITS[name], *(_number(values.get(peer)) for peer in peers)]
            for peer in peers:
                if peer != ITSELF:
                    ours, theirs = values.get(ITSELF), values.get(peer)
                    row.append(f"{ours / theirs:.2f}" if ours is not None and theirs else "-")
            shown.add_row(*row)
    console.print(shown)


def show_goals(table: Medians, console: Console) -> bool:
    """Print each goal beside what was measured; whether all were reached."""
    all_reached = True
    shown = Table("load", "figure", "beside", "measured", "goal", "")
    for goal in GOALS:
        by_peer = table.get(goal.load, {})
        ours = by_peer.get(ITSELF, {}).get(goal.figure)
        theirs = 1.0 if goal.peer == ITSELF else by_peer.get(goal.peer, {}).get(goal.figure)
        if ours is None or not theirs:
            continue
        value = ours / theirs
        reached = value <= goal.value if goal.at_most else value >= goal.value
        all_reached &= reached
        beside = "itself" if goal.peer == ITSELF else goal.peer
        sign = "<=" if goal.at_most else ">="
        verdict = "reached" if reached else "MISSED"
        wanted = f"{sign} {goal.value:.3g}"
        shown.add_row(goal.load, UNITS[goal.figure], beside, f"{value:.3g}", wanted, verdict)
    console.print(shown)
    return all_reached


def save(path: Path, machine: str, versions: dict[str, str], slots: Sequence[Slot]) -> None:
    """Write everything that was measured, for comparing runs."""
    content = {
        "machine": machine,
        "versions": versions,
        "slots": [slot._asdict() for slot in slots],
    }
    path.write_text(json.dumps(content, indent=1))


def plot(path: Path, table: Medians, peers: Sequence[str], machine: str) -> None:
    """Draw the rates of every load that has one, a bar for each broker."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    loads = [load for load, by_peer in table.items() if "rate" in next(iter(by_peer.values()))]
    figure, (rates, costs) = pyplot.subplots(
        1, 2, figsize=(14, 1.5 + 0.5 * len(loads)), sharey=True, layout="constrained"
    )
    height = 0.8 / len(peers)
    for axes, name, title in (
        (rates, "rate", "requests or records a second (log)"),
        (costs, "cpu_us", "broker CPU for each, us (log)"),
    ):
        for number, peer in enumerate(peers):
            places = [n + number * height for n in range(len(loads))]
            values = [table[load].get(peer, {}).get(name, 0.0) for load in loads]
            bars = axes.barh(places, values, height, label=peer)
            axes.bar_label(bars, labels=[_number(value) for value in values], fontsize=7, padding=2)
        axes.set_xscale("log")
        axes.set_title(title)
        axes.margins(x=0.15)
    rates.set_yticks([n + 0.4 - height / 2 for n in range(len(loads))], loads)
    rates.invert_yaxis()
    costs.legend()
    figure.suptitle(machine, fontsize=8)
    figure.savefig(path, dpi=110)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

"""The medians as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .report import number
from .slots import Medians

WIDTH_INCHES = 14
BARS_SHARE = 0.8
"""Of the height of a load's place."""


def plot(path: Path, table: Medians, peers: Sequence[str], machine: str) -> None:
    """Draw rates, the broker's processor time and clients' times, a bar for each peer.

    Args:
        path: of the PNG.
        table: what to draw; loads without a rate or a time are left out.
        peers: whose, in this order.
        machine: a line above all.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rated, timed = (_with(table, "rate"), _with(table, "p50_ms"))
    figure = pyplot.figure(
        figsize=(WIDTH_INCHES, 3 + 0.5 * (len(rated) + len(timed))), layout="constrained"
    )
    heights = [max(1, len(rated)), max(1, len(timed))]
    axes: Any = figure.subplots(2, 2, sharey="row", height_ratios=heights)
    panels = [
        (axes[0][0], rated, "rate", "requests or records a second (log)"),
        (axes[0][1], rated, "cpu_us", "broker CPU for each, us (log)"),
        (axes[1][0], timed, "p50_ms", "a client's p50, ms (log)"),
        (axes[1][1], timed, "p99_ms", "a client's p99, ms (log)"),
    ]
    for panel, loads, name, title in panels:
        _bars(panel, [table[load] for load in loads], peers, name)
        panel.set_title(title)
    for row, loads in zip(axes, (rated, timed), strict=True):
        row[0].set_yticks([n + _middle(peers) for n in range(len(loads))], loads)
        row[0].invert_yaxis()
    axes[0][1].legend()
    figure.suptitle(machine, fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _with(table: Medians, name: str) -> list[str]:
    return [
        load for load, by_peer in table.items() if any(name in each for each in by_peer.values())
    ]


def _middle(peers: Sequence[str]) -> float:
    return BARS_SHARE / 2 - BARS_SHARE / len(peers) / 2


def _bars(
    panel: Any, rows: Sequence[dict[str, dict[str, float]]], peers: Sequence[str], name: str
) -> None:
    height = BARS_SHARE / len(peers)
    for place, peer in enumerate(peers):
        drawn = [(n, row[peer][name]) for n, row in enumerate(rows) if name in row.get(peer, {})]
        places = [n + place * height for n, _ in drawn]
        values = [value for _, value in drawn]
        bars = panel.barh(places, values, height, label=peer)
        panel.bar_label(bars, labels=[number(value) for value in values], fontsize=7, padding=2)
    if any(bar.get_width() > 0 for bar in panel.patches):
        panel.set_xscale("log")
    panel.margins(x=0.15)

"""What was measured as a table, a picture and a file."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..measure import UNITS
from .growth_rate import each_kilobytes, growth
from .series import Figures, Series

COLUMNS_MAX = 3
HEADROOM = 1.12
Rounds = Mapping[str, Sequence[Sequence[Figures]]]
"""By series: for each round the figures at each value."""


def medians(rounds: Sequence[Sequence[Figures]]) -> list[Figures]:
    """At each value the median of every figure."""
    return [
        {name: statistics.median(each[name] for each in at_value) for name in at_value[0]}
        for at_value in zip(*rounds, strict=True)
    ]


def show(chosen: Sequence[Series], points: Mapping[str, Sequence[int]], rounds: Rounds) -> Table:
    """A row for each series: its costs at the first and last value, and how they grow."""
    shown = Table(
        *("series", "from", "to", "CPU us", "to", "x", "exponent", "growth"),
        *("rate /s", "to", "MB", "to", "kB each"),
        show_lines=False,
    )
    for series in chosen:
        values, figures = points[series.name], medians(rounds[series.name])
        costs = [each["cpu_us"] for each in figures]
        grown = growth(values, costs)
        word = grown.word
        if series.may_grow is None and word not in ("flat", "falling"):
            word += " (!)"
        megabytes = [each["memory_mb"] for each in figures]
        shown.add_row(
            series.name,
            *(f"{values[0]:,}", f"{values[-1]:,}", f"{costs[0]:.1f}", f"{costs[-1]:.1f}"),
            *(f"{grown.ratio:.2f}", f"{grown.exponent:.2f}", word),
            *(f"{figures[0]['rate']:,.0f}", f"{figures[-1]['rate']:,.0f}"),
            *(f"{megabytes[0]:.0f}", f"{megabytes[-1]:.0f}"),
            f"{each_kilobytes(values, megabytes):.2f}" if series.each else "-",
        )
    return shown


def show_points(
    series: Series, values: Sequence[int], figures: Sequence[Figures], console: Console
) -> None:
    """A line for each value."""
    for value, each in zip(values, figures, strict=True):
        described = ", ".join(f"{_number(figure)} {UNITS[name]}" for name, figure in each.items())
        console.print(f"  {value:>7,} {series.grows}: {described}", highlight=False)


def save(
    path: Path, machine: str, chosen: Sequence[Series], points: Mapping[str, Any], rounds: Rounds
) -> None:
    """Write everything that was measured, for comparing runs."""
    content = {
        "machine": machine,
        "series": [
            {
                "name": series.name,
                "grows": series.grows,
                "constant": series.constant,
                "settings": series.settings,
                "values": points[series.name],
                "rounds": rounds[series.name],
                "medians": medians(rounds[series.name]),
            }
            for series in chosen
        ],
    }
    path.write_text(json.dumps(content, indent=1))


def plot(
    path: Path,
    machine: str,
    chosen: Sequence[Series],
    points: Mapping[str, Sequence[int]],
    rounds: Rounds,
) -> None:
    """Draw a panel for each series: processor time left, rate right, every round a dot."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = min(COLUMNS_MAX, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    figure, panels = pyplot.subplots(
        rows,
        columns,
        figsize=(5.6 * columns, 3.7 * rows + 0.4),
        squeeze=False,
        layout="constrained",
    )
    for panel in panels.flat[len(chosen) :]:
        panel.set_axis_off()
    for series, panel in zip(chosen, panels.flat, strict=False):
        _draw(panel, series, points[series.name], rounds[series.name])
    figure.suptitle(machine, fontsize=8)
    figure.savefig(path, dpi=110)


def _draw(panel: Any, series: Series, values: Sequence[int], rounds: Any) -> None:
    """One panel. `panel` is matplotlib's `Axes`, which has no types here."""
    figures = medians(rounds)
    rates = panel.twinx()
    for axes, name, colour in ((rates, "rate", "tab:blue"), (panel, "cpu_us", "tab:red")):
        for one_round in rounds:
            dots = [each[name] for each in one_round]
            axes.plot(values, dots, ".", color=colour, alpha=0.35, markersize=4)
        axes.plot(values, [each[name] for each in figures], "o-", color=colour, markersize=4)
        axes.set_ylim(0, HEADROOM * max(each[name] for one in rounds for each in one))
        axes.tick_params(axis="y", labelcolor=colour, labelsize=7)
    if values[0] == 0:
        panel.set_xscale("symlog", linthresh=values[1])
        panel.set_xlim(left=-values[1] / 3)
    elif values[-1] > 10 * values[0]:
        panel.set_xscale("log")
    panel.set_xticks(values, [f"{value:,}" for value in values], fontsize=7)
    panel.minorticks_off()
    panel.set_xlabel(series.grows, fontsize=8)
    panel.set_ylabel("broker CPU for a request, us", color="tab:red", fontsize=8)
    rates.set_ylabel("requests a second", color="tab:blue", fontsize=8)
    grown = growth(values, [each["cpu_us"] for each in figures])
    title = f"CPU x{grown.ratio:.2f}: {grown.word}"
    if series.each:
        kilobytes = each_kilobytes(values, [each["memory_mb"] for each in figures])
        title += f"; {kilobytes:.2f} kB for each {series.each}"
    panel.set_title(f"{series.name}\n{title}", fontsize=9)
    panel.text(
        0.5, 0.03, series.constant, transform=panel.transAxes, fontsize=6, ha="center", wrap=True
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

"""Cost as work grows, plotted.

    python -m odradek.tools.benchmarks.growth [--only REGEX] [--quick]


Each series has a broker of its own in every round, and goes through its values upwards: more
connections, partitions, segments, keys, groups, larger batches. At each value it takes the rate,
the broker's processor time for a request and its resident memory. What needs not grow is flat.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
from pathlib import Path

from rich.console import Console

from ...bench.run.calibration import calibrate
from .growing import batches, connections, groups, keys, partitions, report, segments
from .growing.series import Figures, Series
from .measure import broker, machine

SERIES: tuple[Series, ...] = (
    *connections.SERIES,
    *partitions.SERIES,
    *segments.SERIES,
    *keys.SERIES,
    *groups.SERIES,
    *batches.SERIES,
)
QUICK_VALUE_MAX = 1000
QUICK_SECONDS = 0.5


def main() -> int:
    """Measure, and write table, picture and file."""
    options = _options()
    console = Console(width=160)
    # A descriptor for each connection, here and in the broker, which inherits the limit.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    chosen = [series for series in SERIES if re.search(options.only, series.name)]
    if not chosen:
        console.print("no series has such a name: " + ", ".join(each.name for each in SERIES))
        return 2
    rounds_of_all = 1 if options.quick else options.rounds
    seconds = QUICK_SECONDS if options.quick else options.seconds
    points = {series.name: _values(series, options.quick) for series in chosen}
    rounds: dict[str, list[list[Figures]]] = {series.name: [] for series in chosen}
    console.print(f"{machine()}; a fixed piece of work takes {calibrate():.3f} s")
    for number in range(rounds_of_all):
        for series in chosen:
            console.print(f"{series.name}, round {number + 1} of {rounds_of_all}")
            with broker(*series.settings) as running:
                figures = list(series.measure(running, points[series.name], seconds))
            rounds[series.name].append(figures)
            report.show_points(series, points[series.name], figures, console)
    console.print(f"{machine()}; medians of {rounds_of_all} rounds")
    console.print(report.show(chosen, points, rounds))
    options.out.mkdir(parents=True, exist_ok=True)
    report.save(options.out / "growth.json", machine(), chosen, points, rounds)
    report.plot(options.out / "growth.png", machine(), chosen, points, rounds)
    console.print(f"all figures in {options.out}/growth.json, drawn in {options.out}/growth.png")
    return 0


def _values(series: Series, is_quick: bool) -> list[int]:
    return [
        each
        for each in series.values
        if not is_quick or each <= max(QUICK_VALUE_MAX, series.values[1])
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="series whose name matches")
    parser.add_argument("--rounds", type=int, default=3, help="of all series, each a new broker")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each load")
    parser.add_argument("--quick", action="store_true", help="a small one of everything")
    parser.add_argument("--out", type=Path, default=Path(".cache/bench/results"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

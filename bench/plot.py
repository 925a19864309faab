"""A picture of a run: bars of what each load came to."""

from __future__ import annotations

from pathlib import Path

from .errors import BenchError, Unavailable
from .figures import Figures
from .report import number

SHOWN = (
    ("rate", "requests, records or transactions a second"),
    ("p50_ms", "median, ms"),
    ("cpu_us", "broker CPU for each, us"),
)
DOTS_PER_INCH = 110


def check_picture(path: Path) -> None:
    """Look whether a picture of this name can be drawn.

    Raises:
        Unavailable: there is no matplotlib.
        BenchError: it draws no such kind.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise Unavailable("--plot needs matplotlib: pip install matplotlib") from None
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in kinds:
        raise BenchError(f"{path} cannot be drawn: end its name with one of {', '.join(kinds)}")


def plot(path: Path, runs: dict[str, dict[str, Figures]], title: str) -> None:
    """Draw the loads of one or more runs.

    Args:
        path: of the picture; its ending says of which kind it is (see `check_picture`).
        runs: by their names, medians by load.
        title: above all.

    Raises:
        OSError: it cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [
        (name, text)
        for name, text in SHOWN
        if any(name in figures for run in runs.values() for figures in run.values())
    ]
    loads = [
        load
        for load in dict.fromkeys(load for run in runs.values() for load in run)
        if any(name in run.get(load, {}) for name, _ in shown for run in runs.values())
    ]
    figure, grid = pyplot.subplots(
        1,
        max(1, len(shown)),
        figsize=(4 + 4.5 * len(shown), 1.5 + 0.45 * len(loads)),
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    height = 0.8 / len(runs)
    for axes, (name, text) in zip(grid[0][: len(shown)], shown, strict=True):
        for index, (run, figures) in enumerate(runs.items()):
            places = [place + index * height for place in range(len(loads))]
            values = [figures.get(load, {}).get(name) for load in loads]
            bars = axes.barh(places, [value or 0.0 for value in values], height, label=run)
            labels = ["" if value is None else number(value) for value in values]
            axes.bar_label(bars, labels=labels, fontsize=7, padding=2)
        axes.set_xscale("log")
        axes.set_title(text, fontsize=9)
        axes.margins(x=0.18)
    middle = 0.4 - height / 2
    grid[0][0].set_yticks([place + middle for place in range(len(loads))], loads, fontsize=8)
    grid[0][0].invert_yaxis()
    if len(runs) > 1:
        grid[0][-1].legend(fontsize=8)
    figure.suptitle(title, fontsize=8)
    figure.savefig(path, dpi=DOTS_PER_INCH)
    pyplot.close(figure)

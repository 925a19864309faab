"""What came of a run, as a file that runs are compared by."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from .errors import BenchError
from .figures import UNITS, Figures

FORMAT = 1
FILE_BYTES_MAX = 16 << 20
LOADER_IS_BUSY = 0.9
"""From this share of its time on the loader, not the broker, may be what a rate tells of."""
NOISE = 0.05
"""Figures of two runs that differ by less are the same."""
SMALLER_IS_BETTER = frozenset({"p50_ms", "p99_ms", "cpu_us", "ready_s", "memory_mb"})
COMPARED = ("rate", "mb_s", "p50_ms", "p99_ms", "cpu_us", "ready_s", "memory_mb")


@dataclass
class BenchReport:
    """A run's results.

    Attributes:
        began: when, in ISO 8601.
        target: the broker, as it was named.
        seconds: of each slot.
        rounds: how many there were.
        machine: what it was made on.
        versions: of what took part here.
        loads: medians, by load.
        slots: what they are the medians of, each with `load`, `figures` and `slowed_by`.
        again: how many slots were done again, since something slowed them.
        slowed: how many were kept, though something slowed them.
        left_out: why loads were not run, by name.
        failures: why loads failed, by name.
    """

    began: str
    target: str
    seconds: float
    rounds: int
    machine: dict[str, str]
    versions: dict[str, str]
    loads: dict[str, Figures] = field(default_factory=dict)
    slots: list[dict[str, Any]] = field(default_factory=list)
    again: int = 0
    slowed: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write it as JSON. Raises: OSError."""
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n")


class Ratio(NamedTuple):
    """A figure of two runs."""

    load: str
    figure: str
    earlier: float
    now: float

    @property
    def ratio(self) -> float:
        """This run's over the earlier one's."""
        return self.now / self.earlier

    @property
    def verdict(self) -> str:
        """Whether this run's is the better one, by more than runs of a quiet machine differ."""
        if abs(self.ratio - 1) < NOISE:
            return "the same"
        is_smaller_better = self.figure in SMALLER_IS_BETTER
        return "better" if (self.ratio < 1) == is_smaller_better else "worse"


def read_loads(path: Path) -> tuple[dict[str, Figures], dict[str, str]]:
    """The medians in the file of an earlier run, and the machine that it was made on.

    Raises:
        BenchError: it is no such file.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        text = file.read(FILE_BYTES_MAX + 1)
    try:
        content = json.loads(text) if len(text) <= FILE_BYTES_MAX else None
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BenchError(f"{path} is no file that odradek bench --json wrote")
    loads, machine = content.get("loads"), content.get("machine")
    if not isinstance(machine, dict) or not isinstance(loads, dict) or not _are_loads(loads):
        raise BenchError(f"{path} has no figures of loads: it was changed after it was written")
    return loads, {str(key): str(value) for key, value in machine.items()}


def _are_loads(value: dict[str, Any]) -> bool:
    return all(
        isinstance(figures, dict)
        and all(
            type(each) in (int, float) and math.isfinite(each) and each >= 0
            for each in figures.values()
        )
        for figures in value.values()
    )


def compared(now: dict[str, Figures], earlier: dict[str, Figures]) -> Iterator[Ratio]:
    """Each figure that both runs have."""
    for load, figures in now.items():
        for name in COMPARED:
            if name in figures and earlier.get(load, {}).get(name):
                yield Ratio(load, name, earlier[load][name], figures[name])


def columns(loads: dict[str, Figures]) -> list[str]:
    """The figures that any load has, in the order of a table."""
    return [name for name in UNITS if any(name in figures for figures in loads.values())]


def is_loader_bound(figures: Figures) -> bool:
    """Whether the loader was busy nearly all the time."""
    return figures.get("rate", 0.0) * figures.get("loader_us", 0.0) / 1e6 >= LOADER_IS_BUSY


def number(value: float | None) -> str:
    """A figure with three digits that say something."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"

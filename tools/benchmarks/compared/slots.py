"""What was measured: slots, their medians, and a file of them."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

Medians = dict[str, dict[str, dict[str, float]]]
"""Each figure's median, by load, peer and figure."""


class ComparedSlot(NamedTuple):
    """One load on one peer, once.

    Attributes:
        load: its name.
        peer: its name.
        figures: by name.
        calibration: how much longer than at its best a fixed piece of work took around it; in
            older files the seconds that it took.
        memory_before_mb: the peer's resident memory before it; 0 in files that do not tell.
        memory_after_mb: and after it.
    """

    load: str
    peer: str
    figures: dict[str, float]
    calibration: float
    memory_before_mb: float = 0.0
    memory_after_mb: float = 0.0


class ComparedRun(NamedTuple):
    """All slots of one run, and where they come from.

    Attributes:
        machine: in one line.
        versions: of what was compared, by name.
        slots: all that were kept.
        failures: sentences on what did not work.
    """

    machine: str
    versions: dict[str, str]
    slots: list[ComparedSlot]
    failures: list[str]

    def save(self, path: Path) -> None:
        """Write it, for comparing runs. Raises OSError."""
        content = {**self._asdict(), "slots": [slot._asdict() for slot in self.slots]}
        path.write_text(json.dumps(content, indent=1) + "\n")


def load_run(path: Path) -> ComparedRun:
    """A run that was saved.

    Raises:
        ValueError: there is none; the text names the file.
    """
    try:
        content = json.loads(path.read_text())
        slots = [_slot(each) for each in content["slots"]]
        failures = [str(each) for each in content.get("failures", [])]
        return ComparedRun(str(content["machine"]), dict(content["versions"]), slots, failures)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a file of figures that make bench wrote") from error


def _slot(content: Mapping[str, Any]) -> ComparedSlot:
    figures = {str(name): float(value) for name, value in content["figures"].items()}
    return ComparedSlot(**{**content, "figures": figures})


def medians(slots: Sequence[ComparedSlot]) -> Medians:
    """By load and peer, the median of each figure that all its slots have."""
    found: defaultdict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for slot in slots:
        found[slot.load, slot.peer].append(slot.figures)
    table: Medians = {}
    for (load, peer), figures in found.items():
        table.setdefault(load, {})[peer] = {
            name: statistics.median(each[name] for each in figures)
            for name in figures[0]
            if all(name in each for each in figures)
        }
    return table


def figures_of(table: Medians, load: str) -> list[str]:
    """The names of a load's figures that any peer has, in the order they came."""
    return list(dict.fromkeys(name for figures in table[load].values() for name in figures))


def ratio(over: float | None, under: float | None) -> float | None:
    """One figure over another; None where one is missing, or the other is nothing."""
    return over / under if over is not None and under else None


class MedianChange(NamedTuple):
    """One median of a run beside that of an earlier one.

    Attributes:
        times: the later over the earlier; None where the earlier is nothing.
    """

    load: str
    figure: str
    peer: str
    earlier: float
    later: float
    times: float | None


def changes(earlier: Medians, later: Medians) -> list[MedianChange]:
    """All that both runs have."""
    return [
        MedianChange(load, name, peer, before[name], after, ratio(after, before[name]))
        for load, by_peer in later.items()
        for peer, figures in by_peer.items()
        for before in [earlier.get(load, {}).get(peer, {})]
        for name, after in figures.items()
        if name in before
    ]

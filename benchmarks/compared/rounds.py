"""Turns: every load on every broker, again and again, and the medians of what came of it."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from .loads import Figures, Load, Tools
from .peers import Peer

SLOWED = 1.15
"""A slot around which a fixed piece of work took so much longer than at its best is dropped."""
TRIES_MAX = 3
WARM_UP_SLOTS_MAX = 12
STILL_FASTER = 1.03


class Slot(NamedTuple):
    """One load on one broker, once."""

    load: str
    peer: str
    figures: Figures
    calibration: float


def calibrate() -> float:
    """Seconds that a fixed piece of work takes: tells a machine that others use."""
    began = time.perf_counter()
    sum(i * i for i in range(1_000_000))
    return time.perf_counter() - began


class Turns:
    """Runs the slots, and keeps those that nobody else slowed.

    Args:
        peers: running brokers.
        tools: for the loads.
        tell: takes a line for each slot.

    Attributes:
        slots: what was measured.
        dropped: how many were done again, since something slowed them.
        slowed: how many of `slots` something slowed in every try.
    """

    def __init__(self, peers: Sequence[Peer], tools: Tools, tell: Callable[[str], None]) -> None:
        self.slots: list[Slot] = []
        self.dropped = 0
        self.slowed = 0
        self._peers = peers
        self._tools = tools
        self._tell = tell
        self._best = min(calibrate() for _ in range(5))

    def warm_up(self, load: Load, peer: Peer) -> None:
        """Run a load until its rate rises no more."""
        best = 0.0
        for number in range(WARM_UP_SLOTS_MAX):
            rate = load.run(peer, self._tools)["rate"]
            self._tell(f"warming up {peer.name}: {rate:,.0f}/s")
            if number >= 2 and rate < best * STILL_FASTER:
                return
            best = max(best, rate)

    def run(self, loads: Sequence[Load], rounds: int) -> None:
        """Every load on every broker, `rounds` times; who begins changes with each round."""
        for number in range(rounds):
            for load in loads:
                first = number % len(self._peers)
                for peer in [*self._peers[first:], *self._peers[:first]]:
                    self._slot(load, peer, f"round {number + 1} of {rounds}")

    def _slot(self, load: Load, peer: Peer, where: str) -> None:
        tried = []
        for _ in range(TRIES_MAX):
            before = calibrate()
            figures = load.run(peer, self._tools)
            calibration = max(before, calibrate())
            self._best = min(self._best, before)
            tried.append(Slot(load.name, peer.name, figures, calibration))
            if calibration <= self._best * SLOWED:
                break
            self.dropped += 1
        else:  # a machine that is never quiet: the least disturbed is better than none
            self.dropped -= 1
            self.slowed += 1
        kept = min(tried, key=lambda slot: slot.calibration)
        told = ", ".join(f"{name} {value:,.4g}" for name, value in kept.figures.items())
        self._tell(f"{where}: {load.name} on {peer.name}: {told}")
        self.slots.append(kept)


def medians(slots: Sequence[Slot]) -> dict[str, dict[str, Figures]]:
    """By load and broker, each figure's median."""
    found: defaultdict[tuple[str, str], list[Figures]] = defaultdict(list)
    for slot in slots:
        found[slot.load, slot.peer].append(slot.figures)
    table: dict[str, dict[str, Figures]] = {}
    for (load, peer), figures in found.items():
        table.setdefault(load, {})[peer] = {
            name: statistics.median(each[name] for each in figures) for name in figures[0]
        }
    return table


def ratios(
    table: dict[str, dict[str, Figures]], ours: str
) -> Iterator[tuple[str, str, str, float]]:
    """Ours over each other's: load, other broker, figure, ratio."""
    for load, by_peer in table.items():
        for peer, figures in by_peer.items():
            if peer != ours and ours in by_peer:
                for name, value in figures.items():
                    if value:
                        yield load, peer, name, by_peer[ours][name] / value

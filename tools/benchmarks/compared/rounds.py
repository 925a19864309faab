"""Turns: every load on every peer, again and again, and which of the slots count."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from .loads.load import LeftOut, Load, Tools
from .peers import Failed, Peer
from .slots import Slot

SLOWED = 1.15
"""A slot around which a fixed piece of work took so much longer than at its best is dropped."""
TRIES_MAX = 3
WARM_UP_SLOTS_MAX = 12
WARM_UP_SLOTS_MIN = 3
STILL_FASTER = 1.03
CALIBRATIONS_BEFORE = 5


class Watcher(Protocol):
    """Hears what goes on."""

    def say(self, line: str) -> None:
        """A line to be kept."""

    def at(self, what: str) -> None:
        """What is being done now."""

    def took(self, load: str, peer: str, seconds: float) -> None:
        """A slot was done, with all its tries."""

    def no_more(self, load: str, peer: str) -> None:
        """This will not be done again."""


def calibrate() -> float:
    """Seconds that a fixed piece of work takes: tells a machine that others use."""
    began = time.perf_counter()
    sum(i * i for i in range(1_000_000))
    return time.perf_counter() - began


class Turns:
    """Runs the slots, and keeps those that nobody else slowed.

    Args:
        tools: for the loads.
        watcher: hears of each slot.
        calibration: seconds of a fixed piece of work, measured when called.

    Attributes:
        slots: what was measured.
        dropped: how many were done again, since something slowed them.
        slowed: how many of `slots` something slowed in every try.
        failures: why a load was asked of a peer no more; by load and peer.
        left_out: why a load was asked of none; by load.
    """

    def __init__(
        self, tools: Tools, watcher: Watcher, calibration: Callable[[], float] = calibrate
    ) -> None:
        self.slots: list[Slot] = []
        self.dropped = 0
        self.slowed = 0
        self.failures: dict[tuple[str, str], str] = {}
        self.left_out: dict[str, str] = {}
        self._tools = tools
        self._watcher = watcher
        self._calibration = calibration
        self._best = min(calibration() for _ in range(CALIBRATIONS_BEFORE))

    def start(self, peers: Sequence[Peer], times: int, name: str = "start") -> None:
        """Start each so often, and leave it running at last; how long that took, and its memory.

        A peer that does not start is told of, and has ended.

        Args:
            peers: none of them runs.
            times: how often.
            name: of the slots.
        """
        for number in range(times):
            for peer in peers:
                if (name, peer.name) in self.failures:
                    continue
                self._watcher.at(f"starting {peer.name}")
                try:
                    peer.start()
                    memory = peer.resident_mb()
                except Failed as error:
                    self.failures[name, peer.name] = str(error)
                    self._watcher.say(str(error))
                    peer.end()
                    continue
                figures = {"ready_s": peer.ready_seconds, "memory_mb": memory}
                self.slots.append(Slot(name, peer.name, figures, 0.0, memory, memory))
                if number < times - 1:
                    peer.end()

    def warm_up(self, load: Load, peer: Peer) -> None:
        """Run a load until its rate rises no more; one that fails warms nothing."""
        best = 0.0
        for number in range(WARM_UP_SLOTS_MAX):
            self._watcher.at(f"warming up {peer.name}: {load.name}")
            try:
                rate = load.run(peer, self._tools)["rate"]
            except Exception as error:  # the load's own turn will tell what became of it
                self._watcher.say(f"{peer.name} was not warmed up by {load.name}: {_told(error)}")
                self._revive(peer)
                return
            self._watcher.say(f"warming up {peer.name}: {load.name}: {rate:,.0f}/s")
            if number + 1 >= WARM_UP_SLOTS_MIN and rate < best * STILL_FASTER:
                return
            best = max(best, rate)

    def run(self, loads: Sequence[Load], peers: Sequence[Peer], rounds: int) -> None:
        """Every load on every peer, `rounds` times; who begins changes with each round.

        A load that a peer fails is not asked of it again; the others go on.
        """
        for number in range(rounds):
            first = number % len(peers)
            for load in loads:
                for peer in [*peers[first:], *peers[:first]]:
                    if load.name in self.left_out or (load.name, peer.name) in self.failures:
                        continue
                    self._turn(load, peer, f"round {number + 1} of {rounds}")
                if load.name in self.left_out:
                    for peer in peers:
                        self._watcher.no_more(load.name, peer.name)

    def _turn(self, load: Load, peer: Peer, where: str) -> None:
        began = time.perf_counter()
        what = f"{where}: {load.name} on {peer.name}"
        self._watcher.at(what)
        try:
            slot = self._slot(load, peer)
        except LeftOut as error:
            self.left_out[load.name] = str(error)
            self._watcher.say(f"{load.name} is left out: {error}")
        except Exception as error:  # of whatever kind: one peer's failure must not end the run
            self.failures[load.name, peer.name] = _told(error)
            self._watcher.say(f"{what} failed: {_told(error)}")
            self._watcher.no_more(load.name, peer.name)
            self._revive(peer)
        else:
            told = ", ".join(f"{name} {value:,.4g}" for name, value in slot.figures.items())
            self._watcher.say(f"{what}: {told}")
            self._watcher.took(load.name, peer.name, time.perf_counter() - began)
            self.slots.append(slot)

    def _slot(self, load: Load, peer: Peer) -> Slot:
        tried = []
        for _ in range(TRIES_MAX):
            memory = peer.resident_mb()
            before = self._calibration()
            figures = load.run(peer, self._tools)
            calibration = max(before, self._calibration())
            self._best = min(self._best, before)
            tried.append(
                Slot(load.name, peer.name, figures, calibration, memory, peer.resident_mb())
            )
            if calibration <= self._best * SLOWED:
                break
            self.dropped += 1
        else:  # a machine that is never quiet: the least disturbed is better than none
            self.dropped -= 1
            self.slowed += 1
        return min(tried, key=lambda slot: slot.calibration)

    def _revive(self, peer: Peer) -> None:
        if peer.runs():
            return
        self._watcher.say(f"{peer.name} has ended, and is started again")
        peer.end()
        try:
            peer.start()
        except Failed as error:  # its next loads fail, too, and their rows say so
            self._watcher.say(str(error))


def _told(error: Exception) -> str:
    if isinstance(error, Failed):
        return str(error)
    return f"{type(error).__name__}: {error}".partition("\n")[0]

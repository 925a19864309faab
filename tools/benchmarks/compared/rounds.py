"""Turns: every load on every peer, again and again, and which of the slots count."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from ....bench.run.calibration import Calibration
from .loads.load import ComparedLoad, LeftOut, Tools
from .peers import Failed, Peer
from .slots import ComparedSlot

WARM_UP_SLOTS_MAX = 12
WARM_UP_SLOTS_MIN = 3
STILL_FASTER = 1.03


class TurnsWatcher(Protocol):
    """Hears what goes on."""

    def say(self, line: str) -> None:
        """A line to be kept."""

    def at(self, what: str) -> None:
        """What is being done now."""

    def took(self, load: str, peer: str, seconds: float) -> None:
        """A slot was done, with all its tries."""

    def no_more(self, load: str, peer: str) -> None:
        """This will not be done again."""


class Turns:
    """Runs the slots, and keeps those that nobody else slowed.

    Args:
        tools: for the loads.
        watcher: hears of each slot.
        calibration: finds quiet moments.

    Attributes:
        slots: what was measured.
        calibration: counts the slots that were repeated or slowed.
        failures: why a load is not run on a peer again; by load and peer.
        left_out: why a load is run on none; by load.
    """

    def __init__(
        self, tools: Tools, watcher: TurnsWatcher, calibration: Calibration | None = None
    ) -> None:
        self.slots: list[ComparedSlot] = []
        self.calibration = calibration or Calibration()
        self.failures: dict[tuple[str, str], str] = {}
        self.left_out: dict[str, str] = {}
        self._tools = tools
        self._watcher = watcher

    def start(self, peers: Sequence[Peer], times: int, name: str = "start") -> None:
        """Start each so often, and leave it running at last; how long that took, and its memory.

        A peer that does not start is reported, and has ended.

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
                self.slots.append(ComparedSlot(name, peer.name, figures, 0.0, memory, memory))
                if number < times - 1:
                    peer.end()

    def warm_up(self, load: ComparedLoad, peer: Peer) -> None:
        """Run a load until its rate rises no more; one that fails warms nothing."""
        best = 0.0
        for number in range(WARM_UP_SLOTS_MAX):
            self._watcher.at(f"warming up {peer.name}: {load.name}")
            try:
                rate = load.run(peer, self._tools)["rate"]
            except Exception as error:  # the load's own turn will tell what became of it
                self._watcher.say(
                    f"{peer.name} was not warmed up by {load.name}: {_in_words(error)}"
                )
                self._revive(peer)
                return
            self._watcher.say(f"warming up {peer.name}: {load.name}: {rate:,.0f}/s")
            if number + 1 >= WARM_UP_SLOTS_MIN and rate < best * STILL_FASTER:
                return
            best = max(best, rate)

    def run(self, loads: Sequence[ComparedLoad], peers: Sequence[Peer], rounds: int) -> None:
        """Every load on every peer, `rounds` times; who begins changes with each round.

        A load that a peer fails is not run on it again; the others go on.
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

    def _turn(self, load: ComparedLoad, peer: Peer, where: str) -> None:
        began = time.perf_counter()
        what = f"{where}: {load.name} on {peer.name}"
        self._watcher.at(what)
        try:
            slot = self._slot(load, peer)
        except LeftOut as error:
            self.left_out[load.name] = str(error)
            self._watcher.say(f"{load.name} is left out: {error}")
        except Exception as error:  # of whatever kind: one peer's failure must not end the run
            self.failures[load.name, peer.name] = _in_words(error)
            self._watcher.say(f"{what} failed: {_in_words(error)}")
            self._watcher.no_more(load.name, peer.name)
            self._revive(peer)
        else:
            described = ", ".join(f"{name} {value:,.4g}" for name, value in slot.figures.items())
            self._watcher.say(f"{what}: {described}")
            self._watcher.took(load.name, peer.name, time.perf_counter() - began)
            self.slots.append(slot)

    def _slot(self, load: ComparedLoad, peer: Peer) -> ComparedSlot:
        def measure() -> ComparedSlot:
            memory = peer.resident_mb()
            figures = load.run(peer, self._tools)
            return ComparedSlot(load.name, peer.name, figures, 0.0, memory, peer.resident_mb())

        slot, slowed_by = self.calibration.least_slowed(measure)
        return slot._replace(calibration=slowed_by)

    def _revive(self, peer: Peer) -> None:
        if peer.runs():
            return
        self._watcher.say(f"{peer.name} has ended, and is started again")
        peer.end()
        try:
            peer.start()
        except Failed as error:  # its next loads fail, too, and their rows say so
            self._watcher.say(str(error))


def _in_words(error: Exception) -> str:
    if isinstance(error, Failed):
        return str(error)
    return f"{type(error).__name__}: {error}".partition("\n")[0]

"""Whose turn it is among connections that are all ready: fair queueing by virtual time.

Each connection has a virtual time, which grows by what its turns take. The one whose next turn
would end first in it goes first, if that takes as long as its last. So all get the same share, and
one that takes little waits for one turn of somebody else, not for one of everybody. One that was
idle begins where those are that are served now: it has nothing saved up. A new connection begins a
whole turn later, or a client that opened one after another would always come first.

Source: Demers, Keshav and Shenker, "Analysis and Simulation of a Fair Queueing Algorithm" (1989);
the virtual time is that of Goyal, Vin and Cheng, "Start-time Fair Queuing" (1996).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

PASS_MS = 5
"""After so long a pass gives no more turns: other tasks, and connections that became ready
meanwhile, are looked at first."""
PASS_SECONDS = PASS_MS / 1000
REQUESTS_PER_TURN_MAX = 64
"""So many requests of one connection are handled before others get their turn."""
REQUESTS_PER_ROUND_MAX = 128
"""All that are ready together: some milliseconds of the usual requests, however many they are."""


class Turns:
    """One connection's place in the order.

    Args:
        virtual_seconds: where it begins.

    Attributes:
        virtual_seconds: what its turns have taken so far, and not less than where it came in.
        expected_seconds: what its last turn took.
        is_waiting: whether it was ready before, and had no turn.
    """

    __slots__ = ("expected_seconds", "is_waiting", "virtual_seconds")

    def __init__(self, virtual_seconds: float = 0.0) -> None:
        self.virtual_seconds = virtual_seconds
        self.expected_seconds = 0.0
        self.is_waiting = False


class TakesTurns(Protocol):
    """A connection as its order sees it."""

    turns: Turns


TakesTurnsT = TypeVar("TakesTurnsT", bound=TakesTurns)


def _next_ends(each: TakesTurns) -> float:
    return each.turns.virtual_seconds + each.turns.expected_seconds


class FairOrder:
    """The virtual time of one transport, and the order that follows from it."""

    __slots__ = ("_latest", "_now")

    def __init__(self) -> None:
        self._now = 0.0
        self._latest = 0.0

    def newcomer(self) -> Turns:
        """The place of a new connection."""
        return Turns(self._now + PASS_SECONDS)

    def note_idle(self) -> None:
        """Nobody has waited lately: all that took turns are even."""
        self._now = self._latest

    def sorted(self, ready: Iterable[TakesTurnsT]) -> list[TakesTurnsT]:
        """Those that are ready in the order of their turns."""
        now = self._now
        order = list(ready)
        for each in order:
            turns = each.turns
            if turns.virtual_seconds < now and not turns.is_waiting:
                turns.virtual_seconds = now
            turns.is_waiting = True
        order.sort(key=_next_ends)
        return order

    def note_turn(self, taker: TakesTurns, seconds: float) -> None:
        """One of those that are ready has had its turn, which took so long."""
        turns = taker.turns
        self._now = max(self._now, turns.virtual_seconds)
        turns.virtual_seconds += seconds
        turns.expected_seconds = seconds
        turns.is_waiting = False
        self._latest = max(self._latest, turns.virtual_seconds)


def requests_per_turn(ready: int) -> int:
    """How many requests each of so many connections is handled in a turn, at most."""
    return max(1, min(REQUESTS_PER_TURN_MAX, REQUESTS_PER_ROUND_MAX // ready))

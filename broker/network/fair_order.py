"""Whose turn it is among connections that are all ready: fair queueing by virtual time.

Each connection has a virtual time, which grows by what its turns take. The one whose next turn
would end first in it goes first, if that takes as long as its last. So all get the same share, and
one that takes little waits for one turn of somebody else, not for one of everybody. One that was
idle begins where those are that are served now: it has nothing saved up. A new connection begins a
whole turn later, or a client that opened one after another would always come first.

That bounds shares, not waits: a hundred that begin together have a turn each due at the same time,
and then come before somebody who needs little. So in every other pass those go first whose turns
have been short lately, among themselves by virtual time. Whoever is one of them waits for a pass
that goes by virtual time alone, and in the next for those like it: two passes and their last turns,
as long as all that is short fits in one. Nobody starves: every other pass is as if there were no
such rule. To be one of them is a matter of a balance, to which each turn that handles a request
adds `SHORT_SECONDS`, and from which every turn takes what it took: it must not be below zero. So
one long turn of a client whose turns are short, be it for a garbage collection, does not put it
behind a hundred others, and one that goes for a short one costs as many short ones. A new
connection begins as if it had just had long turns: nothing is gained by opening connections.
Sending, or taking another piece of a long request, is work but no request: whose requests are long
does not earn the place of those whose are short by the many small turns in between, nor is it
expected to have another such turn.

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
FIRST_TURN_SECONDS = PASS_SECONDS / 4
"""So much the first turn of a connection is expected to take, however long it says nothing."""
LATER_SECONDS = PASS_SECONDS - FIRST_TURN_SECONDS
"""So much later a new connection begins, unless others are served meanwhile."""
SHORT_SECONDS = PASS_SECONDS / 16
"""Who takes no longer for a request, on average, is one of those whose turns are short."""
SAVED_SECONDS_MIN = -PASS_SECONDS / 4
"""The balance of a new connection, and of one whose turns are long: some short turns are owed."""
SAVED_SECONDS_MAX = 2 * PASS_SECONDS
"""Short turns are saved up for a long one of so much."""
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
        expected_seconds: what the last turn took that handled a request, or a longer one since.
        saved_seconds: the balance by which its turns are short; below zero they are not.
        is_waiting: whether it was ready before, and had no turn.
    """

    __slots__ = ("expected_seconds", "is_waiting", "saved_seconds", "virtual_seconds")

    def __init__(self, virtual_seconds: float = 0.0) -> None:
        self.virtual_seconds = virtual_seconds
        self.expected_seconds = FIRST_TURN_SECONDS
        self.saved_seconds = SAVED_SECONDS_MIN
        self.is_waiting = False


class TakesTurns(Protocol):
    """A connection as its order sees it."""

    turns: Turns


TakesTurnsT = TypeVar("TakesTurnsT", bound=TakesTurns)


def _short_and_next_ends(each: TakesTurns) -> tuple[bool, float]:
    return each.turns.saved_seconds < 0, _next_ends(each)


def _next_ends(each: TakesTurns) -> float:
    return each.turns.virtual_seconds + each.turns.expected_seconds


class FairOrder:
    """The virtual time of one transport, and the order that follows from it."""

    __slots__ = ("_latest", "_now", "_short_first")

    def __init__(self) -> None:
        self._short_first = False
        self._now = 0.0
        self._latest = 0.0

    def newcomer(self) -> Turns:
        """The place of a new connection."""
        return Turns(self._now + LATER_SECONDS)

    def note_idle(self) -> None:
        """Nobody has waited lately: all that took turns are even."""
        self._now = self._latest

    def sorted(self, ready: Iterable[TakesTurnsT]) -> list[TakesTurnsT]:
        """Those that are ready in the order of their turns, for one pass."""
        now = self._now
        order = list(ready)
        for each in order:
            turns = each.turns
            if turns.virtual_seconds < now and not turns.is_waiting:
                turns.virtual_seconds = now
            turns.is_waiting = True
        self._short_first = not self._short_first
        order.sort(key=_short_and_next_ends if self._short_first else _next_ends)
        return order

    def note_turn(self, taker: TakesTurns, seconds: float, *, is_request: bool = True) -> None:
        """One of those that are ready has had its turn.

        Args:
            taker: whose it was.
            seconds: what it took.
            is_request: whether it handled a request; if not, it only costs.
        """
        turns = taker.turns
        self._now = max(self._now, turns.virtual_seconds)
        turns.virtual_seconds += seconds
        saved = turns.saved_seconds - seconds
        if is_request:
            saved += SHORT_SECONDS
        if is_request or seconds > turns.expected_seconds:
            turns.expected_seconds = seconds
        turns.saved_seconds = min(max(saved, SAVED_SECONDS_MIN), SAVED_SECONDS_MAX)
        turns.is_waiting = False
        self._latest = max(self._latest, turns.virtual_seconds)


def fits_in_pass(taker: TakesTurns, used_seconds: float) -> bool:
    """Whether a pass that has taken so long has one more turn, of this one, in it.

    Two turns of almost a pass each would be a pass of twice its time. Where the next is expected to
    be long, half a pass is enough.
    """
    expected = min(taker.turns.expected_seconds, PASS_SECONDS / 2)
    return used_seconds + expected < PASS_SECONDS


def requests_per_turn(ready: int) -> int:
    """How many requests each of so many connections is handled in a turn, at most."""
    return max(1, min(REQUESTS_PER_TURN_MAX, REQUESTS_PER_ROUND_MAX // ready))

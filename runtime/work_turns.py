"""In which order long work goes on that takes more memory with each of its steps.

An answer of megabytes is made in steps (`long_work.py`), and what there is of it is in memory. If a
hundred clients each want one and all of them advance together, the memory for a hundred is needed.
So the steps go by turns to the work that began first, which is soon done, and to the one that has
had the fewest: what is short is done soon, however many long ones there are. While the steps taken
for unfinished work are many, all turns are the first's.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from . import waiting
from .long_work import take_step_in_turn
from .steps import Steps

_URGENT = -1


class _Work:
    """A piece of work under way.

    Attributes:
        steps: how many it has had.
        ticket: its place among those that had few steps; another one for each step.
        called: set when it is its turn; None while it does not wait for it.
    """

    __slots__ = ("called", "is_urgent", "number", "steps", "ticket")

    def __init__(self, number: int, *, is_urgent: bool) -> None:
        self.number = number
        self.is_urgent = is_urgent
        self.steps = 0
        self.ticket = (0, 0, self)
        self.called: waiting.Event | None = None


class WorkTurns:
    """The turns of one kind of work.

    Args:
        steps_max: while unfinished work has had so many steps, none of it but the first goes on.

    Attributes:
        steps: those that unfinished work has had.
    """

    def __init__(self, steps_max: int) -> None:
        self.steps = 0
        self._steps_max = steps_max
        self._under_way: dict[_Work, None] = {}
        self._tickets: list[tuple[int, int, _Work]] = []
        self._turn_of: _Work | None = None
        self._begun = 0
        self._first_is_next = True

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    async def run(
        self, steps: Steps[None], is_wanted: Callable[[], bool], *, is_urgent: bool = False
    ) -> None:
        """Go on with some work to its end, each step in its turn, or until it is not wanted.

        Args:
            is_urgent: whether it comes before all others: they may depend on it.
        """
        self._begun += 1
        work = _Work(self._begun, is_urgent=is_urgent)
        self._under_way[work] = None
        self._have_ticket(work)
        try:
            while is_wanted():
                await self._wait_for_turn(work)
                if await take_step_in_turn(steps) is not None:
                    return
                work.steps += 1
                self.steps += 1
                self._have_ticket(work)
            steps.close()
        finally:
            del self._under_way[work]
            self.steps -= work.steps
            if self._turn_of is work:
                self._call_next()

    def _have_ticket(self, work: _Work) -> None:
        work.ticket = (_URGENT if work.is_urgent else work.steps, work.number, work)
        heapq.heappush(self._tickets, work.ticket)

    async def _wait_for_turn(self, work: _Work) -> None:
        work.called = waiting.new_event()
        if self._turn_of is None or self._turn_of is work:
            self._call_next()
        try:
            if not work.called.is_set():
                await work.called.wait()
        finally:
            work.called = None

    def _call_next(self) -> None:
        """Let the next one go on."""
        if not self._under_way:
            self._turn_of = None
            self._tickets.clear()
        else:
            self._turn_of = chosen = self._choose()
            assert chosen.called is not None, "whoever is under way waits for its turn"
            chosen.called.set()

    def _choose(self) -> _Work:
        first = next(iter(self._under_way))
        while self._tickets[0] is not self._tickets[0][2].ticket or (
            self._tickets[0][2] not in self._under_way
        ):
            heapq.heappop(self._tickets)
        steps, _, shortest = self._tickets[0]
        if steps == _URGENT:
            return shortest
        self._first_is_next = not self._first_is_next
        if self._first_is_next or self.steps >= self._steps_max:
            return first
        return shortest

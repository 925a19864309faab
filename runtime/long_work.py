"""Work of many milliseconds (`steps.py`), of which others have a turn between its steps.

A thread would not do: it would share the interpreter with the loop, and hold it for longer. Of all
such work of a process one step is done at a time, and then everybody else is looked at: thirty
clients that each have a long request hold the loop no longer than one.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from . import waiting
from .clock import precise_seconds
from .collector import set_aside
from .steps import ITEMS_AT_LEAST, Steps

ResultT = TypeVar("ResultT")

KeepPace: TypeAlias = Callable[[], Awaitable[None]]
"""`Pace.keep`, for work that a simulator drives as well, without a loop."""

STEP_SECONDS = 0.001
"""So long a step is, and one item more. The last step of one piece of work and the first of what
follows may be one in the loop's eyes, and what is freed between them comes on top."""


@contextmanager
def steps_counted() -> Iterator[None]:
    """Have steps end by the number of their items alone, for who replays what was done in them."""
    global STEP_SECONDS
    former, STEP_SECONDS = STEP_SECONDS, 0.0
    try:
        yield
    finally:
        STEP_SECONDS = former


def take_step(work: Steps[ResultT]) -> tuple[ResultT] | None:
    """Go on with some work for one step.

    The garbage collector does not look at what a step makes: all of it is in use, and what a step
    that is not the last makes is set aside.

    Returns:
        A tuple of the work's result; None if there is more to do.
    """
    ends = precise_seconds() + STEP_SECONDS
    collects = gc.isenabled()
    gc.disable()
    try:
        for _ in range(ITEMS_AT_LEAST):
            next(work)
        while precise_seconds() < ends:
            next(work)
    except StopIteration as done:
        return (done.value,)
    else:
        set_aside()
    finally:
        if collects:
            gc.enable()
    return None


async def take_step_in_turn(work: Steps[ResultT]) -> tuple[ResultT] | None:
    """The same, when it is this work's turn among all that is done in steps."""
    async with waiting.turns_of_long_work():
        return take_step(work)


async def run_in_steps(work: Steps[ResultT]) -> ResultT:
    """Run some work to its end, each step in its turn; returns what it returns."""
    while True:
        done = await take_step_in_turn(work)
        if done is not None:
            return done[0]


async def run_at_pace(work: Steps[ResultT], keep_pace: KeepPace) -> ResultT:
    """Run some work to its end as part of other work that has a pace."""
    while True:
        await keep_pace()
        try:
            next(work)
        except StopIteration as done:
            result: ResultT = done.value
            return result


class Pace:
    """Keeps async work from holding the loop: what it awaits may never wait.

    Work that awaits after each of its items is a loop with `keep` in it, and no generator. A step
    begins when it is its turn among all that is done in steps, the first one too: as many as there
    are connections may begin at once.
    """

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends = 0.0

    async def keep(self) -> None:
        """Let others run, if the work has had a step's time since they did."""
        if precise_seconds() >= self._ends:
            async with waiting.turns_of_long_work():
                await waiting.checkpoint()
            self._ends = precise_seconds() + STEP_SECONDS

"""Work of many milliseconds, done in steps between which others have a turn.

A thread would not do: it would share the interpreter with the loop, and hold it for longer.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import Final, TypeVar

import trio

ResultT = TypeVar("ResultT")

ITEMS_PER_STEP: Final = 1_000
"""At one to three microseconds for each, one to three milliseconds a step."""


async def run_in_steps(work: Generator[None, None, ResultT]) -> ResultT:
    """Run `work`, which yields after each of its items, to its end; returns what it does.

    What does not fill a step is done at once. The garbage collector does not look at what a
    step makes: all of it is in use.
    """
    while True:
        collects = gc.isenabled()
        gc.disable()
        try:
            for _ in range(ITEMS_PER_STEP):
                next(work)
        except StopIteration as done:
            result: ResultT = done.value
            return result
        finally:
            if collects:
                gc.enable()
        await trio.lowlevel.checkpoint()

"""How the commands run what is async in them, so that Ctrl-C ends it where it waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple

ArgumentsT = TypeVarTuple("ArgumentsT")
ResultT = TypeVar("ResultT")


def run_async(
    work: Callable[[*ArgumentsT], Awaitable[ResultT]], *arguments: *ArgumentsT
) -> ResultT:
    """Run some work to its end; returns what it returns.

    Args:
        work: an async function.
        arguments: what it is called with.

    Raises:
        KeyboardInterrupt: Ctrl-C, where the work waits. In the middle of what a client does it
            would leave the client's parts at odds with each other, and might be lost.
    """
    import trio

    return trio.run(work, *arguments, restrict_keyboard_interrupt_to_checkpoints=True)

"""Work that would block the loop, done in a thread.

What goes to a thread gets immutable inputs and touches no state of a room; the loop
applies the result. Tests put `run_inline` in its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

ResultT = TypeVar("ResultT")


class Offload(Protocol):
    """Runs a plain function somewhere it may block, and awaits its result."""

    def __call__(self, work: Callable[[], ResultT]) -> Awaitable[ResultT]:
        """Run `work`; what it raises is raised to the awaiting caller."""


async def run_in_thread(work: Callable[[], ResultT]) -> ResultT:
    """Run `work` in one of trio's worker threads."""
    import trio

    return await trio.to_thread.run_sync(work)


async def run_inline(work: Callable[[], ResultT]) -> ResultT:
    """Run `work` here and now, as a seeded test needs it."""
    return work()

"""Work that would block the loop, done in a thread.

What goes to a thread gets immutable inputs and touches no state of a package; the loop
applies the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from . import waiting

ResultT = TypeVar("ResultT")


async def run_in_thread(work: Callable[[], ResultT]) -> ResultT:
    """Run `work` in one of trio's worker threads; what it raises is raised here."""
    return await waiting.run_in_thread(work)


async def run_in_stoppable_thread(work: Callable[[], ResultT], stop: Callable[[], None]) -> ResultT:
    """The same for work that takes long: who is cancelled has it stop, and waits until it has.

    Args:
        work: what it raises is raised here.
        stop: has `work` end soon; it is called when that has ended, too.
    """

    async def stop_when_cancelled() -> None:
        try:
            await waiting.sleep_forever()
        finally:
            stop()

    async with waiting.open_nursery() as nursery:
        nursery.start_soon(stop_when_cancelled)
        try:
            result = await waiting.run_in_thread(work)
        except Exception:
            await waiting.checkpoint()  # where it was cancelled, this is its end
            raise
        nursery.cancel_scope.cancel()
    return result


class FewThreads:
    """A few of trio's worker threads, for work that others can have done as often as they like.

    Args:
        count: how many run at once; what else comes waits for them, and not for all threads.
    """

    def __init__(self, count: int) -> None:
        import trio

        self._limiter = trio.CapacityLimiter(count)

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """As `run_in_thread`."""
        import trio

        return await trio.to_thread.run_sync(work, limiter=self._limiter)


async def run_in_abandoned_thread(work: Callable[[], ResultT]) -> ResultT:
    """The same for work that waits for others: who is cancelled leaves it behind to end alone."""
    import trio

    return await trio.to_thread.run_sync(work, abandon_on_cancel=True)


def rest(seconds: float) -> None:
    """Let a worker thread wait; the loop has the interpreter meanwhile."""
    time.sleep(seconds)

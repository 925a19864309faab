"""Waiting for what another process does not announce."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

FoundT = TypeVar("FoundT")

WAIT_SECONDS_MAX = 120.0
"""How long to wait unless the call says otherwise."""
FIRST_PAUSE_SECONDS = 0.002
PAUSE_SECONDS_MAX = 0.05


class NotReached(AssertionError, TimeoutError):
    """What a test waited for has not come about; the text says what was seen instead."""


def wait_until(
    look: Callable[[], FoundT | None],
    timeout: float = WAIT_SECONDS_MAX,
    otherwise: str | Callable[[], str] = "it did not come about in time",
) -> FoundT:
    """Look again and again until there is something to see; returns it.

    Args:
        look: returns what is waited for, or something false; what it raises ends the wait.
        timeout: in seconds.
        otherwise: what to say if it does not come about.

    Raises:
        NotReached: it did not.
    """
    for pause in _pauses(timeout):
        found = look()
        if found:
            return found
        time.sleep(pause)
    return _last_look(look, otherwise)


async def wait_until_async(
    look: Callable[[], FoundT | None],
    timeout: float = WAIT_SECONDS_MAX,
    otherwise: str | Callable[[], str] = "it did not come about in time",
) -> FoundT:
    """The same in a coroutine of asyncio or trio, whose loop goes on meanwhile.

    Args:
        look: as of `wait_until`; it is called in a thread, since it may ask a broker.
        timeout: in seconds.
        otherwise: what to say if it does not come about.

    Raises:
        NotReached: it did not.
    """
    in_thread, sleep = _of_this_loop()
    for pause in _pauses(timeout):
        found = await in_thread(look)
        if found:
            return found  # type: ignore[return-value]  # what `look` returned
        await sleep(pause)
    return _last_look(look, otherwise)


def refuse_in_event_loop(instead: str) -> None:
    """Refuse to block an event loop, whose other tasks are often what is waited for.

    Args:
        instead: what to write in place of this call.

    Raises:
        RuntimeError: an event loop of asyncio or trio runs in this thread.
    """
    if running_loop() is not None:
        raise RuntimeError(
            f"this would block the event loop, and with it all that the test does beside it: "
            f"write {instead}"
        )


def running_loop() -> str | None:
    """The library of the event loop that runs this code: "asyncio" or "trio"; None: none does."""
    from sniffio import AsyncLibraryNotFoundError, current_async_library

    try:
        return current_async_library()
    except AsyncLibraryNotFoundError:
        return None


def _of_this_loop() -> tuple[
    Callable[[Callable[[], object]], Awaitable[object]], Callable[[float], Awaitable[object]]
]:
    """How the loop that runs this code runs a function in a thread, and how it sleeps."""
    if running_loop() == "trio":
        import trio

        return trio.to_thread.run_sync, trio.sleep
    import asyncio

    return asyncio.to_thread, asyncio.sleep


def _pauses(timeout: float) -> Iterator[float]:
    """How long to pause between two looks, until so many seconds are over."""
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE_SECONDS
    while time.monotonic() < deadline:
        yield pause
        pause = min(pause * 1.5, PAUSE_SECONDS_MAX)


def _last_look(look: Callable[[], FoundT | None], otherwise: str | Callable[[], str]) -> FoundT:
    found = look()
    if not found:
        raise NotReached(otherwise if isinstance(otherwise, str) else otherwise())
    return found

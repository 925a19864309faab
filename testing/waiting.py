"""Waiting for what another process does not announce."""

from __future__ import annotations

import time
from collections.abc import Callable
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
    deadline = time.monotonic() + timeout
    pause = FIRST_PAUSE_SECONDS
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() >= deadline:
            raise NotReached(otherwise if isinstance(otherwise, str) else otherwise())
        time.sleep(pause)
        pause = min(pause * 1.5, PAUSE_SECONDS_MAX)

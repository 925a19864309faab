"""Waiting for what another process tells only when it is asked."""

from __future__ import annotations

import time
from collections.abc import Callable

LOOK_SECONDS = 0.05


def wait_until(is_so: Callable[[], bool], otherwise: Callable[[], str], seconds_max: float) -> None:
    """Ask again and again until it is so.

    Args:
        is_so: asks; it may raise what should end the wait.
        otherwise: what to say if it does not come.
        seconds_max: how long it may take.

    Raises:
        AssertionError: it did not come.
    """
    deadline = time.monotonic() + seconds_max
    while not is_so():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(LOOK_SECONDS)

"""Counts what is done in one piece, while others on the loop wait for their turns."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import trio

CALLS_PER_TURN_MAX = 10_000
"""Of a step of 64 items, or of a few things that are done in one go: some milliseconds."""

CALL_SECONDS = 1e-6


class Work:
    """Counts calls of functions, Python's and C's, between an onlooker's turns.

    It is a clock as well, by which a call takes a microsecond.

    Args:
        calls_max: so many may come between two turns.

    Attributes:
        most: the largest count between two turns so far.
        total: all of them.
    """

    def __init__(self, calls_max: int = CALLS_PER_TURN_MAX) -> None:
        self._calls_max = calls_max
        self.most = self.total = 0
        self._count = 0
        self._calls = 0

    def seconds(self) -> float:
        """So long all that was counted has taken."""
        return self._calls * CALL_SECONDS

    def profile(self, _frame: FrameType, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            self._count += 1
            self._calls += 1

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count from now on; what came before does not count."""
        self.most = self.total = self._count = 0
        sys.setprofile(self.profile)
        try:
            yield
        finally:
            sys.setprofile(None)

    async def check(self, tasks: int = 1) -> None:
        """Others had turns, and often enough.

        Args:
            tasks: so many of the request's own may follow each other between two of the onlooker's
                turns, since trio runs what is ready in any order.
        """
        for _ in range(2):  # after one, the onlooker may not have had its turn yet
            await trio.lowlevel.checkpoint()
        assert self.total > 2 * self._calls_max, "the request is long"
        assert self.most <= tasks * self._calls_max, f"{self.most} calls at once"

    async def run(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.most = max(self.most, self._count)
            self.total += self._count
            self._count = 0

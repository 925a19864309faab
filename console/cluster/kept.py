"""Answers that are dear: kept for the next pages, and read anew behind the back of who waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import trio

from ...runtime.clock import Clock
from ..explaining import HANDLED

ValueT = TypeVar("ValueT")

PATIENCE_SECONDS = 0.03
"""How long a page waits for a newer answer while there is an older one."""
KEPT_MS_MAX = 10_000
"""What is older than this is not shown, however long a newer answer takes."""


class Kept(Generic[ValueT]):
    """One answer of the cluster, which all pages share.

    Args:
        nursery: where it is read anew.
        clock: the time.
        read: asks the cluster.
        fresh_ms: an answer that is no older is shown as it is.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        clock: Clock,
        read: Callable[[], Awaitable[ValueT]],
        fresh_ms: int,
    ) -> None:
        self._nursery = nursery
        self._clock = clock
        self._read = read
        self._fresh_ms = fresh_ms
        self._value: ValueT | None = None
        self._read_ms = 0
        self._failure: Exception | None = None
        self._reading: trio.Event | None = None
        self._changes = 0

    def forget(self) -> None:
        """Something was changed: the next page is to show it."""
        self._value = None
        self._changes += 1

    async def get(self) -> ValueT:
        """An answer that is fresh; or one that is not very old, if that is sooner.

        Raises:
            What reading it raises.
        """
        while True:
            age_ms = self._clock.monotonic_ms() - self._read_ms
            if self._value is not None and age_ms <= self._fresh_ms:
                return self._value
            if self._reading is None:
                self._reading, self._failure = trio.Event(), None
                self._nursery.start_soon(self._read_anew)
            is_old = self._value is None or age_ms > KEPT_MS_MAX
            reading = self._reading
            with trio.move_on_after(float("inf") if is_old else PATIENCE_SECONDS):
                await reading.wait()
            if self._value is not None:
                return self._value
            if self._failure is not None:
                raise self._failure
            # It was forgotten again as it came.

    async def _read_anew(self) -> None:
        """Read until nothing was changed meanwhile, and tell those who wait."""
        assert self._reading is not None
        value: ValueT | None = None
        failure: Exception | None = None
        changes = -1
        while changes != self._changes and failure is None:
            changes = self._changes
            try:
                value = await self._read()
            except HANDLED as error:
                value, failure = None, error
        self._value, self._failure = value, failure
        self._read_ms = self._clock.monotonic_ms()
        reading, self._reading = self._reading, None
        reading.set()

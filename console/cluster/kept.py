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
DEAR_MS = 50
"""What takes longer to read is not read for a page's sake while it is kept warm."""
WARM_SECONDS = 7.0
"""How often an answer is read anew while pages are looked at: before it is too old to be shown."""
KEPT_MS_MAX = 10_000
"""What is older than this is not shown, however long a newer answer takes."""


class Kept(Generic[ValueT]):
    """One answer of the cluster, which all pages share.

    Args:
        nursery: where it is read anew.
        clock: the time.
        read: asks the cluster.
        fresh_ms: an answer that is no older is shown as it is.
        warm_ms: for so long after the last page it is read again before it is too old to be shown;
            0: only when a page needs it. Where that is dear, pages show it as it is meanwhile.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        clock: Clock,
        read: Callable[[], Awaitable[ValueT]],
        fresh_ms: int,
        warm_ms: int = 0,
    ) -> None:
        self._nursery = nursery
        self._clock = clock
        self._read = read
        self._fresh_ms = fresh_ms
        self._warm_ms = warm_ms
        self._used_ms = 0
        self._is_warmed = False
        self._cost_ms = 0
        self._value: ValueT | None = None
        self._read_ms = 0
        self._failure: Exception | None = None
        self._reading: trio.Event | None = None
        self._changes = 0

    def forget(self) -> None:
        """Something was changed: the next page is to show it."""
        self._value = None
        self._changes += 1

    def use(self) -> None:
        """Somebody looks at pages, and will need it soon: it is kept warm from now on."""
        self._used_ms = self._clock.monotonic_ms()
        if self._warm_ms and not self._is_warmed:
            self._is_warmed = True
            self._nursery.start_soon(self._keep_warm)

    async def get(self) -> ValueT:
        """An answer that is fresh; or one that is not very old, if that is sooner.

        Raises:
            What reading it raises.
        """
        self.use()
        while True:
            age_ms = self._clock.monotonic_ms() - self._read_ms
            if self._value is not None and age_ms <= self._shown_ms:
                return self._value
            reading = self._begin_reading()
            is_old = self._value is None or age_ms > KEPT_MS_MAX
            with trio.move_on_after(float("inf") if is_old else PATIENCE_SECONDS):
                await reading.wait()
            if self._value is not None:
                return self._value
            if self._failure is not None:
                raise self._failure
            # It was forgotten again as it came.

    @property
    def is_at_hand(self) -> bool:
        """Whether there is an answer that can be shown."""
        age_ms = self._clock.monotonic_ms() - self._read_ms
        return self._value is not None and age_ms <= KEPT_MS_MAX

    @property
    def _shown_ms(self) -> int:
        """How old an answer may be that is shown as it is."""
        is_dear = self._is_warmed and self._cost_ms > DEAR_MS
        return KEPT_MS_MAX if is_dear else self._fresh_ms

    def _begin_reading(self) -> trio.Event:
        """Read anew, unless that is under way; what comes to pass when it is done."""
        if self._reading is None:
            self._reading, self._failure = trio.Event(), None
            self._nursery.start_soon(self._read_anew)
        return self._reading

    async def _keep_warm(self) -> None:
        """Whoever looks at a page goes to the next one soon, and is not to wait there."""
        while self._clock.monotonic_ms() - self._used_ms < self._warm_ms:
            await trio.sleep(WARM_SECONDS)
            self._begin_reading()
        self._is_warmed = False

    async def _read_anew(self) -> None:
        """Read until nothing was changed meanwhile, and tell those who wait."""
        assert self._reading is not None
        value: ValueT | None = None
        failure: Exception | None = None
        changes, began_ms = -1, 0
        while changes != self._changes and failure is None:
            changes, began_ms = self._changes, self._clock.monotonic_ms()
            try:
                value = await self._read()
            except HANDLED as error:
                value, failure = None, error
        self._value, self._failure = value, failure
        self._read_ms = self._clock.monotonic_ms()
        self._cost_ms = self._read_ms - began_ms
        reading, self._reading = self._reading, None
        reading.set()

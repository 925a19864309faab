"""What the controller has still to do, one event after the other (Kafka's ControllerEventManager).

Events and what clients request exclude each other: one runs to its end before the next begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from ..common.errors import ErrorCode, KafkaError
from ..runtime import waiting

Event = Callable[[], Coroutine[Any, Any, None]]
Post = Callable[[Event], None]
"""Puts an event behind those that wait."""

OPERATION_TIMEOUT_MS = 30_000
"""How long an operation without a time-out of its own waits for those before it."""


class EventQueue:
    """Events in the order they came, and the lock under which each runs."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._kinds: set[str] = set()
        self._arrived = waiting.new_event()
        self._settled = waiting.new_event()
        self._lock = waiting.new_lock()

    @asynccontextmanager
    async def exclusive(self, timeout_ms: int = OPERATION_TIMEOUT_MS) -> AsyncIterator[None]:
        """Wait for the operations before this one, at most as long as the client would.

        A time-out ends the wait only: an operation that has begun goes to its end, since
        requests that brokers were sent cannot be taken back.

        Raises:
            KafkaError: REQUEST_TIMED_OUT, with nothing done. As in Kafka, nothing is done
                for a client that would not wait at all.
        """
        if timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        with waiting.move_on_after(timeout_ms / 1000) as turn:
            await self._lock.acquire()
        if turn.cancelled_caught:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        try:
            yield
        finally:
            self._lock.release()

    def post(self, event: Event) -> None:
        """Put an event behind those that wait."""
        self._events.append(event)
        self._arrived.set()

    def post_once(self, kind: str, event: Event) -> None:
        """Post it unless one of its kind waits: several changes of a kind need it only once."""
        if kind in self._kinds:
            return
        self._kinds.add(kind)

        async def run() -> None:
            self._kinds.discard(kind)
            await event()

        self.post(run)

    def pop(self) -> Event | None:
        """The next event, None where there is none."""
        return self._events.popleft() if self._events else None

    def clear(self) -> None:
        """Forget all of them."""
        self._events.clear()
        self._kinds.clear()

    def wake(self) -> None:
        """End the wait for an event, though none may be there."""
        self._arrived.set()

    async def wait_for_event(self) -> None:
        """Wait until there is an event, or until woken."""
        if not self._events:
            self._arrived = waiting.new_event()
            await self._arrived.wait()

    def notify_settled(self) -> None:
        """Something was done: who waits for its outcome checks again."""
        settled, self._settled = self._settled, waiting.new_event()
        settled.set()

    async def wait_until_settled(self) -> None:
        """Wait until the next time that something was done."""
        await self._settled.wait()

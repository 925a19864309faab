"""What the controller has still to do, one event after the other.

After Kafka's ControllerEventManager.
"""

from __future__ import annotations

from collections import deque

import trio

from .active_controller import Event


class EventQueue:
    """Events in the order they came."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._kinds: set[str] = set()
        self._arrived = trio.Event()
        self._settled = trio.Event()

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
        """Let whoever waits for an event look up."""
        self._arrived.set()

    async def wait_for_event(self) -> None:
        """Wait until there is an event, or until woken."""
        if not self._events:
            self._arrived = trio.Event()
            await self._arrived.wait()

    def tell_settled(self) -> None:
        """Something was done: whoever waits for its outcome may look."""
        settled, self._settled = self._settled, trio.Event()
        settled.set()

    async def wait_until_settled(self) -> None:
        """Wait until the next time that something was done."""
        await self._settled.wait()

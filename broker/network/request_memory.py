"""How much memory the long requests of all connections together may take while they come.

A request that comes in one piece of a few KB is handled at once. A longer one is put together over
many receives, and thousands of clients may each be in the middle of one: so it reserves its whole
length before it is read, as in Kafka (SimpleMemoryPool, `queued.max.request.bytes`). While the
memory is used up, a connection whose request has none is not read: the rest stays in its socket.
One that exceeds what is left is let in all the same, and the next waits.

What is reserved is free again when the request's buffer is. A client that has begun a request and
does not go on would keep others out for ever: while somebody waits, its connection is closed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from ...runtime.clock import Clock
from ...runtime.timers import Timers

if TYPE_CHECKING:
    from .connection import Connection

logger = logging.getLogger(__name__)

REQUEST_BYTES_MAX: Final = 64 << 20
"""Where `queued.max.request.bytes` is -1. Kafka has no bound then."""
RECEIVE_BYTES: Final = 128 << 10
"""Most that is received from one connection in one pass. A Java producer under load has five
requests of 16 KB under way: all of them are one pass."""
RECEIVE_BYTES_WITHOUT_MEMORY: Final = 4 << 10
"""The same while the memory is used up: what there may be of a request that has to wait."""
LOOK_AGAIN_MS: Final = 10
"""Whoever waits looks so often whether there is memory: buffers are freed without a word."""
LOOK_FOR_STALLED_MS: Final = 1_000
STALLED_MS: Final = 5_000
PROGRESS_BYTES_MIN: Final = 256 << 10
"""A request that others wait for has to grow by so much in `STALLED_MS`, or be whole."""


def request_bytes_max(setting: int) -> int:
    """How much memory there is by `queued.max.request.bytes`, where 0 and less is the default."""
    return setting if setting > 0 else REQUEST_BYTES_MAX


class Reservation:
    """A part of the memory, for as long as a request's buffer refers to this.

    Attributes:
        arrived: how much of the request had come when it was looked at last.
        arrived_ms: when that was, or when it had grown enough.
    """

    __slots__ = ("__weakref__", "_memory", "_size", "arrived", "arrived_ms", "connection")

    def __init__(self, memory: RequestMemory, connection: Connection, size: int) -> None:
        self._memory = memory
        self._size = size
        self.connection = connection
        self.arrived = 0
        self.arrived_ms = 0

    def __del__(self) -> None:
        self._memory.free(self._size)


class RequestMemory:
    """The memory of one broker's requests.

    Args:
        bytes_max: how much there is.
        clock, timers: the broker's.

    Attributes:
        receive_bytes: so much may be received of a connection whose request has no memory.
        used_bytes: what is reserved.
    """

    def __init__(self, bytes_max: int, clock: Clock, timers: Timers) -> None:
        self.receive_bytes = RECEIVE_BYTES
        self.used_bytes = 0
        self._bytes_max = bytes_max
        self._clock = clock
        self._timers = timers
        self._reservations: WeakSet[Reservation] = WeakSet()
        self._waiting: dict[Connection, None] = {}
        self._is_looking = False
        self._waiting_since_ms = self._stalled_at_ms = 0

    def reserve(self, connection: Connection, size: int) -> Reservation | None:
        """Memory for a request, or None: the connection gets `on_memory` when it may ask again.

        A broker's requests do not wait: what others wait for may depend on them.
        """
        if connection.is_broker:
            size = 0
        elif self.used_bytes >= self._bytes_max or (
            self._waiting and next(iter(self._waiting)) is not connection
        ):
            self._wait(connection)
            return None
        self._waiting.pop(connection, None)
        self.used_bytes += size
        self._note_room()
        reservation = Reservation(self, connection, size)
        self._reservations.add(reservation)
        return reservation

    def free(self, size: int) -> None:
        """A buffer is gone."""
        self.used_bytes -= size
        self._note_room()

    def _note_room(self) -> None:
        has_room = self.used_bytes < self._bytes_max
        self.receive_bytes = RECEIVE_BYTES if has_room else RECEIVE_BYTES_WITHOUT_MEMORY

    def _wait(self, connection: Connection) -> None:
        self._waiting[connection] = None
        if not self._is_looking:
            self._is_looking = True
            self._waiting_since_ms = self._stalled_at_ms = self._clock.monotonic_ms()
            self._look_later()

    def _look_later(self) -> None:
        self._timers.schedule(self._clock.monotonic_ms() + LOOK_AGAIN_MS, self._look)

    def _look(self) -> None:
        """Have those that wait go on while there is room, and see who keeps them waiting."""
        self._waiting = {each: None for each in self._waiting if not each.is_closed}
        while self._waiting and self.used_bytes < self._bytes_max:
            connection = next(iter(self._waiting))
            connection.on_memory()
            self._waiting.pop(connection, None)
        if not self._waiting:
            self._is_looking = False
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._stalled_at_ms >= LOOK_FOR_STALLED_MS:
            self._stalled_at_ms = now_ms
            self._close_stalled(now_ms)
        self._look_later()

    def _close_stalled(self, now_ms: int) -> None:
        for each in list(self._reservations):
            connection = each.connection
            if connection.reader.reservation is not each:
                continue  # all of it has come
            arrived = connection.reader.arrived_bytes
            began_ms = max(each.arrived_ms, self._waiting_since_ms)
            if arrived - each.arrived >= PROGRESS_BYTES_MIN:
                each.arrived, each.arrived_ms = arrived, now_ms
            elif now_ms - began_ms >= STALLED_MS:
                connection.fail(
                    f"{arrived} bytes of a request have come, and the rest is too slow while "
                    "others wait for memory (queued.max.request.bytes)"
                )

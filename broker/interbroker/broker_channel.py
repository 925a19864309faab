"""What waits to be sent to another broker, and the task that sends it while there is something."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

from ...client.errors import ClientError
from ...client.network.connection import Connection

if TYPE_CHECKING:
    from ..broker import Broker

logger = logging.getLogger(__name__)

IDLE_SECONDS_MAX = 30
"""A connection over which nothing was sent for so long is closed."""

ItemT = TypeVar("ItemT")


class BrokerChannel(Generic[ItemT]):
    """A queue to one broker, of which one request at a time is made.

    What comes while a request is under way goes with the next one.

    Args:
        broker: this one.
        broker_id: the other one.
        versions: of the APIs that are asked; looked at when a connection is made.
        take: removes what goes into one request from the queue, at least one item.
        exchange: sends the request for some items, and takes its answer. Raises ClientError.
        fail: told of the items that were not answered; may put them into channels again.
    """

    def __init__(
        self,
        broker: Broker,
        broker_id: int,
        versions: Callable[[], Mapping[int, int]],
        take: Callable[[deque[ItemT]], list[ItemT]],
        exchange: Callable[[Connection, list[ItemT]], Awaitable[None]],
        fail: Callable[[list[ItemT]], None],
    ) -> None:
        self._broker = broker
        self._broker_id = broker_id
        self._versions = versions
        self._take = take
        self._exchange = exchange
        self._fail = fail
        self._waiting: deque[ItemT] = deque()
        self._under_way: list[ItemT] = []
        self._wake = trio.Event()
        self._is_running = False
        self._failures = 0
        """One after the other."""

    def put(self, item: ItemT) -> None:
        """Have something sent, soon."""
        self._waiting.append(item)
        self._wake.set()
        if not self._is_running:
            self._is_running = True
            self._broker.start_task(self._run)

    async def _run(self) -> None:
        """Send until there was nothing to send for a while, or the connection breaks."""
        while await self._send_over_one_connection() and self._waiting:
            pass  # something came while an idle connection was closed
        self._is_running = False
        unanswered = [*self._under_way, *self._waiting]
        self._under_way = []
        self._waiting.clear()
        if unanswered:
            self._fail(unanswered)

    async def _send_over_one_connection(self) -> bool:
        """Returns whether it went well to its end."""
        try:
            with self._while_alive() as scope:
                await self._send_all()
        except ClientError as error:
            self._failures += 1
            logger.log(
                logging.INFO if self._failures == 1 else logging.DEBUG,
                "requests to broker %d are not answered: %s",
                self._broker_id,
                error,
            )
        except Exception:
            logger.exception("a request to broker %d failed", self._broker_id)
        else:
            return not scope.cancelled_caught
        return False

    async def _send_all(self) -> None:
        async with self._broker.links.to_broker(self._broker_id, self._versions()) as connection:
            while await self._has_something():
                self._under_way = self._take(self._waiting)
                await self._exchange(connection, self._under_way)
                self._failures = 0
                self._under_way = []
                self._broker.server.finish_outside_work()

    @contextmanager
    def _while_alive(self) -> Iterator[trio.CancelScope]:
        """A scope that ends when the broker is gone: it may be frozen, and never say so."""
        cache = self._broker.metadata_cache

        def look() -> None:
            if not cache.has_alive_broker(self._broker_id):
                scope.cancel()

        cache.listeners.append(look)
        try:
            with trio.CancelScope() as scope:
                yield scope
        finally:
            cache.listeners.remove(look)

    async def _has_something(self) -> bool:
        with trio.move_on_after(IDLE_SECONDS_MAX):
            while not self._waiting:
                self._wake = trio.Event()
                await self._wake.wait()
        return bool(self._waiting)

"""Queues of what is sent to other brokers, each with a task while there is something to send."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Generic, TypeVar

from ...client.errors import ClientError
from ...client.network.connection import Connection
from ...common.named_tuple import NamedTuple
from ...metadata.metadata_cache import MetadataCache
from ...runtime import waiting
from .broker_links import BrokerLinks

logger = logging.getLogger(__name__)

IDLE_SECONDS_MAX = 30
"""A connection over which nothing was sent for so long is closed."""

ItemT = TypeVar("ItemT")


class ChannelTasks(NamedTuple):
    """What channels use of this broker.

    Attributes:
        links: opens connections to other brokers.
        cache: says which of them are alive.
        start_task: runs an async function beside the requests.
        flush: writes and sends what an answer has led to.
    """

    links: BrokerLinks
    cache: MetadataCache
    start_task: Callable[..., None]
    flush: Callable[[], None]


class BatchSender(NamedTuple, Generic[ItemT]):
    """What is sent over channels, and how.

    Attributes:
        versions: of the APIs that are used; looked at when a connection is made.
        take: removes what goes into one request from the queue, at least one item.
        send: sends the request for some items, and handles its answer. Raises ClientError.
        fail: called with the items that were not answered; may put them into channels again.
    """

    versions: Callable[[], Mapping[int, int]]
    take: Callable[[deque[ItemT]], list[ItemT]]
    send: Callable[[Connection, list[ItemT]], Awaitable[None]]
    fail: Callable[[list[ItemT]], None]


class BrokerChannels(Generic[ItemT]):
    """A channel to each broker to which something was sent."""

    def __init__(self, tasks: ChannelTasks, exchange: BatchSender[ItemT]) -> None:
        self._tasks = tasks
        self._exchange = exchange
        self._channels: dict[int, BrokerChannel[ItemT]] = {}

    def put(self, broker_id: int, item: ItemT) -> None:
        """Have something sent to a broker, soon."""
        channel = self._channels.get(broker_id)
        if channel is None:
            channel = BrokerChannel(self._tasks, broker_id, self._exchange)
            self._channels[broker_id] = channel
        channel.put(item)


class BrokerChannel(Generic[ItemT]):
    """A queue to one broker, of which one request at a time is made.

    What comes while a request is under way goes with the next one.

    Args:
        tasks: what it uses of this broker.
        broker_id: the other one.
        exchange: what is sent.
    """

    def __init__(self, tasks: ChannelTasks, broker_id: int, exchange: BatchSender[ItemT]) -> None:
        self._tasks = tasks
        self._broker_id = broker_id
        self._exchange = exchange
        self._waiting: deque[ItemT] = deque()
        self._under_way: list[ItemT] = []
        self._wake = waiting.new_event()
        self._is_running = False
        self._failures = 0
        """One after the other."""

    def put(self, item: ItemT) -> None:
        """Have something sent, soon."""
        self._waiting.append(item)
        self._wake.set()
        if not self._is_running:
            self._is_running = True
            self._tasks.start_task(self._run)

    async def _run(self) -> None:
        """Send until there was nothing to send for a while, or the connection breaks."""
        while await self._send_over_one_connection() and self._waiting:
            pass  # something came while an idle connection was closed
        self._is_running = False
        unanswered = [*self._under_way, *self._waiting]
        self._under_way = []
        self._waiting.clear()
        if unanswered:
            self._exchange.fail(unanswered)

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
        versions = self._exchange.versions()
        async with self._tasks.links.to_broker(self._broker_id, versions) as connection:
            while await self._has_something():
                self._under_way = self._exchange.take(self._waiting)
                await self._exchange.send(connection, self._under_way)
                self._failures = 0
                self._under_way = []
                self._tasks.flush()

    @contextmanager
    def _while_alive(self) -> Iterator[waiting.CancelScope]:
        """A scope that ends when the broker is gone: it may be frozen, and never say so."""
        cache = self._tasks.cache

        def look() -> None:
            if not cache.has_alive_broker(self._broker_id):
                scope.cancel()

        cache.listeners.append(look)
        try:
            with waiting.new_cancel_scope() as scope:
                yield scope
        finally:
            cache.listeners.remove(look)

    async def _has_something(self) -> bool:
        with waiting.move_on_after(IDLE_SECONDS_MAX):
            while not self._waiting:
                self._wake = waiting.new_event()
                await self._wake.wait()
        return bool(self._waiting)

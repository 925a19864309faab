"""Runs fetchers: sends their requests, waits for responses, pauses.

After the thread of Kafka's ReplicaFetcherThread and its BrokerBlockingSender: one request at
a time on a connection of the fetcher's own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, closing
from typing import TYPE_CHECKING, Any, Protocol

from ...client.errors import ClientError
from ...runtime import waiting
from ...runtime.clock import Clock
from .fetcher import ReplicaFetcher
from .leader_endpoint import LeaderEndpoint, decode_epochs, decode_fetch, decode_offsets
from .plans import EpochsPlan, FetchPlan, RequestPlan, WaitPlan
from .settings import NEW_PARTITION_WAIT_MS

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

logger = logging.getLogger(__name__)

BYTES_PER_STEP = 256 * 1024
"""After so many appended bytes others have a turn: about half a millisecond."""


class LeaderConnection(Protocol):
    """A connection to a leader, as `client.connection.Connection` is."""

    async def request(self, request: Message, *, version: int, timeout_ms: int) -> Any:
        """Send a request and return the response. Raises ClientError when it is broken."""


OpenConnection = Callable[
    [int, Mapping[int, int], str], AbstractAsyncContextManager[LeaderConnection]
]
"""Connects to a broker by its id, for these versions of APIs by key, under a client id, as long
as the context lasts. Raises ClientError."""

StartTask = Callable[..., object]
"""`start_task(function, *arguments)` has an async function run, as a nursery's start_soon."""


class FetcherTask:
    """One fetcher's task.

    Args:
        fetcher: what it runs.
        endpoint: translates.
        open_connection: connects to its leader.
        clock: monotonic time, passing as that of `runtime.waiting` does.
    """

    def __init__(
        self,
        fetcher: ReplicaFetcher,
        endpoint: LeaderEndpoint,
        open_connection: OpenConnection,
        clock: Clock,
    ) -> None:
        self._fetcher = fetcher
        self._endpoint = endpoint
        self._open_connection = open_connection
        self._clock = clock
        self._has_news = waiting.new_event()
        self._scope = waiting.new_cancel_scope()
        self._fetch_scope = waiting.new_cancel_scope()

    def wake(self) -> None:
        """Partitions were added: look for the next request, even if a fetch is in flight."""
        self._has_news.set()
        self._hurry()

    def _hurry(self) -> None:
        """Bound the wait for the response to a fetch, which is abandoned then."""
        deadline = waiting.current_time() + NEW_PARTITION_WAIT_MS / 1000
        self._fetch_scope.deadline = min(self._fetch_scope.deadline, deadline)

    def close(self) -> None:
        """Send no more requests; a response in flight is not used."""
        self._scope.cancel()

    async def run(self) -> None:
        """Follow until closed. Whatever goes wrong is tried again after a pause."""
        fetcher = self._fetcher
        client_id = f"broker-{fetcher.settings.broker_id}-fetcher-{fetcher.fetcher_id}"
        if self._scope.cancel_called:
            return
        self._scope = waiting.new_cancel_scope()  # entered once; this may be run again
        with self._scope:
            while True:
                plan = await self._next_request()
                try:
                    async with self._open_connection(
                        fetcher.leader_id, self._endpoint.versions, client_id
                    ) as connection:
                        while plan is not None and await self._exchange(connection, plan):
                            plan = await self._next_request(is_connected=True)
                    continue
                except ClientError as error:
                    logger.warning(
                        "fetcher %d from broker %d backs off: %s",
                        fetcher.fetcher_id,
                        fetcher.leader_id,
                        error,
                    )
                except Exception:
                    # A fault of ours may not end replication from that broker.
                    logger.exception(
                        "fetcher %d from broker %d backs off", fetcher.fetcher_id, fetcher.leader_id
                    )
                fetcher.request_failed(self._clock.monotonic_ms())

    async def _next_request(self, *, is_connected: bool = False) -> RequestPlan | None:
        """Wait until there is a request; None: the connection need not be kept until then."""
        while True:
            self._has_news = waiting.new_event()
            now_ms = self._clock.monotonic_ms()
            plan = self._fetcher.next_request(now_ms)
            if not isinstance(plan, WaitPlan):
                return plan
            if plan.until_ms is None and is_connected:
                return None
            seconds = float("inf") if plan.until_ms is None else (plan.until_ms - now_ms) / 1000
            with waiting.move_on_after(seconds):
                await self._has_news.wait()

    async def _exchange(self, connection: LeaderConnection, plan: RequestPlan) -> bool:
        """One request and what its response leads to; whether the connection can be used again.

        Raises:
            ClientError: the connection broke.
        """
        message, version = self._endpoint.encode(plan)
        timeout_ms = self._fetcher.settings.socket_timeout_ms
        with waiting.new_cancel_scope() as scope:
            if isinstance(plan, FetchPlan) and plan.max_wait_ms > NEW_PARTITION_WAIT_MS:
                self._fetch_scope = scope  # others are answered soon enough
                if self._has_news.is_set():  # while it connected
                    self._hurry()
            response = await connection.request(message, version=version, timeout_ms=timeout_ms)
        if scope.cancelled_caught:
            self._fetcher.request_abandoned()
            return False
        now_ms = self._clock.monotonic_ms()
        if isinstance(plan, FetchPlan):
            await _in_steps(self._fetcher.take_fetched(plan, decode_fetch(plan, response), now_ms))
        elif isinstance(plan, EpochsPlan):
            self._fetcher.epochs_answered(plan, decode_epochs(response), now_ms)
        else:
            self._fetcher.offsets_answered(plan, decode_offsets(response), now_ms)
        return True


async def _in_steps(steps: Generator[int, None, None]) -> None:
    """An answer may hold megabytes, and the loop has others to serve."""
    taken = 0
    with closing(steps):  # at once, should this be cancelled: others wait for what was appended
        for size in steps:
            taken += size
            if taken >= BYTES_PER_STEP:
                taken = 0
                await waiting.checkpoint()


class FetcherTasks:
    """Starts a task for each fetcher: what a `FetcherManager` is given.

    Args:
        keep_running: begins one, and again should it fail.
        open_connection: connects to brokers.
        endpoint: translates.
        clock: monotonic time, passing as that of `runtime.waiting` does.
    """

    def __init__(
        self,
        keep_running: StartTask,
        open_connection: OpenConnection,
        endpoint: LeaderEndpoint,
        clock: Clock,
    ) -> None:
        self._keep_running = keep_running
        self._open_connection = open_connection
        self._endpoint = endpoint
        self._clock = clock

    def __call__(self, fetcher: ReplicaFetcher) -> FetcherTask:
        """Run a fetcher from now on, until the task is closed."""
        task = FetcherTask(fetcher, self._endpoint, self._open_connection, self._clock)
        self._keep_running(task.run)
        return task

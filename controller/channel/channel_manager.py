"""Sends the controller's requests over the wire, to each broker in order.

After Kafka's ControllerChannelManager: one task and one queue for each broker. What cannot
be sent is sent again, until it is answered or the broker is gone.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from ...client.errors import ClientError
from ...common.live_broker import EndPoint, LiveBroker
from ...runtime import waiting
from ...runtime.long_work import run_in_steps
from ...runtime.steps import ITEMS_AT_LEAST
from ...runtime.supervisor import Supervisor
from .channel import ControllerRequest, OnAnswer
from .codec import decode_errors, encode, partitions_of

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

logger = logging.getLogger(__name__)

RETRY_BACKOFF_MS = 100
"""How long to wait before a request that failed is sent again (Kafka's own figure)."""


class BrokerLink(Protocol):
    """A connection to one broker, as `client.connection.Connection` is."""

    async def request(
        self, request: Message, *, version: int, timeout_ms: int, in_steps: bool
    ) -> Any:
        """Send a request and return the response. Raises ClientError when it is broken."""


Connect = Callable[[int, EndPoint], AbstractAsyncContextManager[BrokerLink]]
"""A link to a broker, by its id and where it is reached, for as long as the context lasts.

Raises ClientError."""


class ChannelManager:
    """The queues to all live brokers.

    Args:
        listener_name: the listener that brokers use among themselves.
        connect: opens a link.
        timeout_ms: a request unanswered for so long is sent again (`controller.socket.timeout.ms`).
        supervisor: begins a queue's task again that fails; one of its own if None.
    """

    def __init__(
        self,
        listener_name: str,
        connect: Connect,
        timeout_ms: int,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._listener_name = listener_name
        self._connect = connect
        self._timeout_ms = timeout_ms
        self._supervisor = supervisor or Supervisor()
        self._queues: dict[int, BrokerQueue] = {}
        self._nursery: waiting.Nursery | None = None

    async def run(self) -> None:
        """Send what is handed over until cancelled."""
        async with waiting.open_nursery() as nursery:
            self._nursery = nursery
            for queue in self._queues.values():
                nursery.start_soon(self._supervisor.run, queue.run)
            await waiting.sleep_forever()

    def add_broker(self, broker: LiveBroker) -> None:
        """Be ready to send to a broker that has come, or has come back."""
        self.remove_broker(broker.broker_id)
        queue = BrokerQueue(broker, self._listener_name, self._connect, self._timeout_ms)
        self._queues[broker.broker_id] = queue
        if self._nursery is not None:
            self._nursery.start_soon(self._supervisor.run, queue.run)

    def remove_broker(self, broker_id: int) -> None:
        """Drop what waits for a broker that is gone; its callbacks are not called."""
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            queue.close()

    def send(self, broker_id: int, request: ControllerRequest, on_answer: OnAnswer | None) -> None:
        """Send after what was sent before; call back with the answer, later."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            queue.put(request, on_answer)


class BrokerQueue:
    """What waits to be sent to one broker, and the task that sends it."""

    def __init__(
        self, broker: LiveBroker, listener_name: str, connect: Connect, timeout_ms: int
    ) -> None:
        self._broker = broker
        self._listener_name = listener_name
        self._connect = connect
        self._timeout_ms = timeout_ms
        self._waiting: deque[tuple[ControllerRequest, OnAnswer | None]] = deque()
        self._wake = waiting.new_event()
        self._scope = waiting.new_cancel_scope()
        self._failures = 0
        """Of sending the first that waits, one after the other."""

    def put(self, request: ControllerRequest, on_answer: OnAnswer | None) -> None:
        """Queue a request."""
        self._waiting.append((request, on_answer))
        self._wake.set()

    def close(self) -> None:
        """Send nothing any more."""
        self._scope.cancel()

    async def run(self) -> None:
        """Send request after request until closed."""
        endpoint = self._broker.endpoint(self._listener_name)
        if endpoint is None:
            logger.error(
                "broker %d has no listener %s: the controller cannot reach it",
                self._broker.broker_id,
                self._listener_name,
            )
            return
        if self._scope.cancel_called:
            return
        self._scope = waiting.new_cancel_scope()  # entered once; this may be run again
        with self._scope:
            while True:
                await self._wait_for_requests()
                try:
                    async with self._connect(self._broker.broker_id, endpoint) as link:
                        await self._send_all(link)
                except ClientError as error:
                    self._note_failure(error)
                await waiting.sleep(RETRY_BACKOFF_MS / 1000)

    def _note_failure(self, error: ClientError) -> None:
        """Once is no trouble: a broker that stops is often gone before its registration."""
        self._failures += 1
        logger.log(
            logging.INFO if self._failures == 1 else logging.WARNING,
            "%d requests to broker %d wait: %s",
            len(self._waiting),
            self._broker.broker_id,
            error,
        )

    async def _wait_for_requests(self) -> None:
        while not self._waiting:
            self._wake = waiting.new_event()
            await self._wake.wait()

    async def _send_all(self, link: BrokerLink) -> None:
        """One after the other; each stays in the queue until it is answered."""
        while True:
            await self._wait_for_requests()
            request, on_answer = self._waiting[0]
            message, version = await run_in_steps(encode(request, self._listener_name))
            response = await link.request(
                message,
                version=version,
                timeout_ms=self._timeout_ms,
                in_steps=len(partitions_of(request)) > ITEMS_AT_LEAST,
            )
            self._failures = 0
            self._waiting.popleft()
            if on_answer is not None:
                on_answer(await run_in_steps(decode_errors(request, response)))

"""One operation at a time: the controller's answer to Kafka's controller event queue."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from ..common.errors import ErrorCode, KafkaError

OPERATION_TIMEOUT_MS = 30_000
"""How long an operation without a time-out of its own waits for those before it."""


class Turn:
    """Lets one operation run at a time, in the order they came."""

    def __init__(self) -> None:
        self._lock = trio.Lock()

    @asynccontextmanager
    async def take(self, timeout_ms: int = OPERATION_TIMEOUT_MS) -> AsyncIterator[None]:
        """Wait for the operations before this one, as long as the client would.

        A time-out ends the wait only: an operation that has begun goes to its end, since
        what it has told brokers cannot be taken back.

        Raises:
            KafkaError: REQUEST_TIMED_OUT, with nothing done. As in Kafka, nothing is done
                for a client that would not wait at all.
        """
        if timeout_ms <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        with trio.move_on_after(timeout_ms / 1000) as waiting:
            await self._lock.acquire()
        if waiting.cancelled_caught:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        try:
            yield
        finally:
            self._lock.release()

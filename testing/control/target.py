"""What verbs act on in the broker's process: the broker, its request log and its faults."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import trio

from ..inspection.request_log import RequestLog

if TYPE_CHECKING:
    from ...broker.broker import Broker
    from ...broker.request.requests import Request
    from ...runtime.clock import Clock
    from ..faults.fault_table import FaultTable

POLL_INTERVAL_S = 0.002


class ControlTarget:
    """The broker that a control channel reaches.

    It fills the dispatcher's hooks, which only a broker for tests pays for: the request log sees
    every request and answer, and the faults decide what becomes of them.

    Args:
        broker: the product's broker; it does not serve yet.

    Attributes:
        request_log: its last requests.
        faults: its faults; None: there was none yet.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.request_log = RequestLog(broker)
        self.faults: FaultTable | None = None
        dispatcher = broker.dispatcher
        dispatcher.use_hooks(
            on_request=self._on_request, on_answer=self._on_answer, on_framed=self._on_framed
        )

    @property
    def clock(self) -> Clock:
        """The broker's time."""
        return self.broker.clock

    def start_task(self, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Run an async function on the broker's loop, until the broker ends."""
        self.broker.supervisor.start_task(function, *arguments)

    async def wait_until(self, holds: Callable[[], object], seconds: float) -> bool:
        """Poll until something holds of the broker; returns whether it did within the time."""
        with trio.move_on_after(seconds):
            while not holds():
                await trio.sleep(POLL_INTERVAL_S)
            return True
        return False

    def _on_request(self, request: Request[Any]) -> bool:
        self.request_log.note(request)
        return self.faults is not None and self.faults.take_request(request)

    def _on_answer(self, request: Request[Any], response: Any) -> Any:
        self.request_log.note_answer(request, response)
        return response if self.faults is None else self.faults.take_answer(request, response)

    def _on_framed(self, request: Request[Any], buffers: list[Any]) -> bool:
        return self.faults is not None and self.faults.take_framed(request, buffers)

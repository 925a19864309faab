"""Every request and answer of a broker, shown to those who want to see or to break them.

It fills the hooks of the dispatcher, and keeps their costs to a test's broker. What watches is
told of everything; what breaks decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ...broker.request.dispatch import Dispatcher
    from ...broker.request.requests import Request


class Watcher(Protocol):
    """Is shown requests and answers; a request log is one."""

    def note(self, request: Request) -> None:
        """A request has come, and nothing was done with it yet.

        What its body refers to is valid only until this returns: records lie in memory that is
        used again.
        """

    def note_answer(self, request: Request, response: Any) -> None:
        """The broker answers it; a fault may still change or lose the answer."""


class Breaker(Protocol):
    """Decides what becomes of requests and answers; the table of faults is one."""

    def take_request(self, request: Request) -> bool:
        """Whether it takes the request over, so that the broker does not handle it."""

    def take_answer(self, request: Request, response: Any) -> Any:
        """The answer to give in place of the broker's."""

    def take_framed(self, request: Request, buffers: list[Any]) -> bool:
        """Whether it takes over to send the encoded answer."""


class RequestHooks:
    """The hooks of one broker.

    Attributes:
        watchers: are shown everything, in their order.
        breaker: decides; None: everything goes its usual way.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.watchers: list[Watcher] = []
        self.breaker: Breaker | None = None
        dispatcher.on_request = self._on_request
        dispatcher.on_answer = self._on_answer
        dispatcher.on_framed = self._on_framed

    def _on_request(self, request: Request) -> bool:
        for watcher in self.watchers:
            watcher.note(request)
        return self.breaker is not None and self.breaker.take_request(request)

    def _on_answer(self, request: Request, response: Any) -> Any:
        for watcher in self.watchers:
            watcher.note_answer(request, response)
        if self.breaker is None:
            return response
        return self.breaker.take_answer(request, response)

    def _on_framed(self, request: Request, buffers: list[Any]) -> bool:
        return self.breaker is not None and self.breaker.take_framed(request, buffers)

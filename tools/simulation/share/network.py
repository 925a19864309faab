"""What brokers say to each other about share partitions' states: late, twice or never.

As `BrokerChannel` does, a channel has one request under way, and what waits behind it fails with
it. A request whose channel has failed may still arrive.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, cast

from ....broker.interbroker.broker_channel import BatchSender
from ....broker.share.persister import Submitted
from ....client.errors import ConnectError
from ....client.network.connection import Connection


@coroutine
def _answer() -> Generator[None, Any, Any]:
    """Wait for whoever sends the answer into it."""
    return (yield)


class StateRequest:
    """One request on its way.

    Attributes:
        message: what is said.
        response: the answer, once there is one.
        is_awaited: whether somebody waits for the answer.
    """

    def __init__(self, channel: StateChannel, items: list[Submitted]) -> None:
        self.channel = channel
        self.items = items
        self.message: Any = None
        self.response: Any = None
        self.is_awaited = True
        sender = channel.sender
        send = sender.send(cast("Connection", self), items)
        self._exchange = cast("Coroutine[None, Any, None]", send)
        self._exchange.send(None)

    async def request(self, message: Any, timeout_ms: int) -> Any:
        """What `Connection.request` is to the sender."""
        self.message = message
        return await _answer()

    def answer(self) -> None:
        """The answer has come."""
        try:
            self._exchange.send(self.response)
        except StopIteration:
            return
        raise AssertionError("a sender waits for one answer only")

    def fail(self) -> None:
        """The connection is lost."""
        self.is_awaited = False
        try:
            self._exchange.throw(ConnectError("the connection is lost"))
        except ConnectError:
            return
        raise AssertionError("a sender lets a lost connection be known")


class StateChannel:
    """From one broker's process to another broker."""

    def __init__(self, sender: BatchSender[Submitted], broker_id: int) -> None:
        self.sender = sender
        self.broker_id = broker_id
        self.waiting: deque[Submitted] = deque()
        self.under_way: StateRequest | None = None

    def fail(self) -> None:
        """The connection is lost, and with it all that waits for it."""
        unanswered = list(self.waiting)
        self.waiting.clear()
        if self.under_way is not None:
            request, self.under_way = self.under_way, None
            request.fail()
            unanswered = [*request.items, *unanswered]
        if unanswered:
            self.sender.fail(unanswered)


class StateChannels:
    """Those of one broker's process; `StatePersister` puts operations into them."""

    def __init__(self, sender: BatchSender[Submitted]) -> None:
        self.by_broker: dict[int, StateChannel] = {}
        self._sender = sender

    def put(self, broker_id: int, item: Submitted) -> None:
        """Have an operation sent to a broker, soon."""
        channel = self.by_broker.setdefault(broker_id, StateChannel(self._sender, broker_id))
        channel.waiting.append(item)


class StateNetwork:
    """All requests that may still arrive, and all answers.

    Attributes:
        requests: sent, and not taken yet.
        answers: given, and not received yet.
    """

    def __init__(self, rng: random.Random) -> None:
        self.requests: list[StateRequest] = []
        self.answers: list[StateRequest] = []
        self._rng = rng

    def send_next(self, channel: StateChannel) -> None:
        """Send what waits in a channel that is free."""
        items = channel.sender.take(channel.waiting)
        request = channel.under_way = StateRequest(channel, items)
        self.requests.append(request)

    def lose(self, channel: StateChannel) -> None:
        """A connection is lost; what was sent over it may arrive all the same, or not."""
        request = channel.under_way
        if request in self.requests and self._rng.random() < 0.5:
            self.requests.remove(request)
        if request in self.answers:
            self.answers.remove(request)
        channel.fail()

    def forget(self, channel: StateChannel) -> None:
        """Whoever sent over a channel is no more; what was sent may arrive all the same."""
        self.answers = [each for each in self.answers if each.channel is not channel]

    def receive(self, request: StateRequest) -> None:
        """An answer arrives where somebody may wait for it."""
        self.answers.remove(request)
        if request.is_awaited and request.channel.under_way is request:
            request.channel.under_way = None
            request.answer()

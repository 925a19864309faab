"""What is on its way between brokers: fetchers' requests, and leaders' answers.

Requests are real ones, encoded and decoded by the product, and the broker's own handlers
answer them. A fetcher has one request under way at a time. When it gives one up, or its
connection breaks, the request may still arrive, at any time later; only its answer is lost.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Protocol

from ....broker.handlers.registry import REGISTRATIONS
from ....broker.request.requests import ImplicitSession
from ....broker.request.route import Route
from ....protocol import decode_body, encode_body
from ....protocol.api_keys import ApiKey
from ....replication.fetcher.fetcher import ReplicaFetcher
from ....replication.fetcher.leader_endpoint import (
    LeaderEndpoint,
    decode_epochs,
    decode_fetch,
    decode_offsets,
)
from ....replication.fetcher.plans import EpochsPlan, FetchPlan, RequestPlan, WaitPlan
from ....runtime.clock import Clock
from ....storage.io.file_slice import FileSlice


class FetchingBroker(Protocol):
    """The broker whose fetchers send here."""

    broker_id: int
    network: Network
    drivers: list[FetcherDriver]
    alive: bool
    frozen: bool

    @property
    def clock(self) -> Clock:
        """What time it is for the broker."""


class Call:
    """One request of a fetcher to a leader.

    Attributes:
        answer: the response's body once the leader has answered.
    """

    __slots__ = ("answer", "api_key", "body", "driver", "leader_id", "plan", "sent_ms", "version")

    def __init__(
        self, driver: FetcherDriver, plan: RequestPlan, api_key: int, version: int, body: bytes
    ) -> None:
        self.driver = driver
        self.plan = plan
        self.api_key = api_key
        self.version = version
        self.body = body
        self.leader_id = driver.fetcher.leader_id
        self.sent_ms = driver.broker.clock.monotonic_ms()
        self.answer: bytes | None = None


class ReceivedBy:
    """The connection of a request as the broker's handlers see it."""

    def __init__(self, listener_name: str) -> None:
        self.listener_name = listener_name

    @property
    def implicit_session(self) -> ImplicitSession | None:
        """None is kept: each request of the simulation comes by a connection of its own."""
        return None

    @implicit_session.setter
    def implicit_session(self, session: ImplicitSession) -> None:
        session.close()


class ReceivedRequest:
    """A request as the broker's handlers see it (`broker.requests.Request`)."""

    is_long = False

    __slots__ = (
        "api_key",
        "api_version",
        "body",
        "call",
        "client_id",
        "connection",
        "is_from_follower",
        "route",
    )

    def __init__(self, call: Call) -> None:
        self.call = call
        self.connection = ReceivedBy("PLAINTEXT")
        self.api_key = call.api_key
        self.api_version = call.version
        self.route = Route(REGISTRATIONS[call.api_key], call.version)
        self.client_id = "fetcher"
        self.is_from_follower = False
        self.body = decode_body(call.api_key, call.version, memoryview(call.body))

    def answer(self, response: Any) -> None:
        """The leader has answered: its bytes are those that are on the disk now."""
        buffers = type(response).encoder(self.api_version)(response)
        self.call.answer = b"".join(
            each.read() if isinstance(each, FileSlice) else each for each in buffers
        )
        self.call.driver.broker.network.answered(self.call)


class FetcherDriver:
    """Drives one fetcher, as `FetcherTask` does, when the scheduler says so.

    Args:
        broker: whose fetcher.
        fetcher: the product's.
        endpoint: translates.
    """

    def __init__(
        self, broker: FetchingBroker, fetcher: ReplicaFetcher, endpoint: LeaderEndpoint
    ) -> None:
        self.broker = broker
        self.fetcher = fetcher
        self.under_way: Call | None = None
        self.steps: Generator[int, None, None] | None = None
        """An answer that is taken a partition at a time; others have turns in between."""
        self._endpoint = endpoint
        self._look_at_ms = 0

    def wake(self) -> None:
        """Partitions were added."""
        self._look_at_ms = 0

    def close(self) -> None:
        """Send nothing any more."""
        self.under_way = None
        if self.steps is not None:
            self.steps.close()
        self.broker.drivers.remove(self)

    def is_ready(self, now_ms: int) -> bool:
        """Whether it may have something to send."""
        return self.under_way is None and self.steps is None and self._look_at_ms <= now_ms

    def send_next(self) -> None:
        """Send what the fetcher plans next, if anything."""
        now_ms = self.broker.clock.monotonic_ms()
        plan = self.fetcher.next_request(now_ms)
        if isinstance(plan, WaitPlan):
            self._look_at_ms = 2**62 if plan.until_ms is None else plan.until_ms
            return
        message, version = self._endpoint.encode(plan)
        api_key = ApiKey.LIST_OFFSETS
        if isinstance(plan, FetchPlan):
            api_key = ApiKey.FETCH
        elif isinstance(plan, EpochsPlan):
            api_key = ApiKey.OFFSET_FOR_LEADER_EPOCH
        self.under_way = Call(self, plan, api_key, version, encode_body(message, version))
        self.broker.network.requests.append(self.under_way)

    def fail(self) -> None:
        """The connection broke."""
        self.under_way = None
        self._look_at_ms = 0
        self.fetcher.request_failed(self.broker.clock.monotonic_ms())

    def take(self, call: Call) -> None:
        """The answer is here."""
        assert call.answer is not None
        self.under_way = None
        self._look_at_ms = 0
        response = decode_body(call.api_key, call.version, memoryview(call.answer), response=True)
        now_ms = self.broker.clock.monotonic_ms()
        plan = call.plan
        if isinstance(plan, FetchPlan):
            self.steps = self.fetcher.take_fetched(plan, decode_fetch(plan, response), now_ms)
            self.take_on()
        elif isinstance(plan, EpochsPlan):
            self.fetcher.epochs_answered(plan, decode_epochs(response), now_ms)
        else:
            self.fetcher.offsets_answered(plan, decode_offsets(response), now_ms)

    def take_on(self) -> None:
        """Take the next partition of an answer."""
        if self.steps is not None and next(self.steps, None) is None:
            self.steps = None


class Network:
    """All calls that are under way.

    Attributes:
        requests: on their way to leaders, those given up among them.
        answers: on their way back.
        cut: pairs of brokers that cannot reach each other.
    """

    def __init__(self) -> None:
        self.requests: list[Call] = []
        self.answers: list[Call] = []
        self.cut: set[frozenset[int]] = set()

    def answered(self, call: Call) -> None:
        """A leader has answered a call; nobody waits for those that were given up."""
        if call.driver.under_way is call:
            self.answers.append(call)

    def is_cut(self, call: Call) -> bool:
        """Whether the link that a call needs is cut."""
        return frozenset((call.driver.broker.broker_id, call.leader_id)) in self.cut

    def forget_requests_of(self, broker_id: int) -> None:
        """What a broker has sent does not arrive any more."""
        self.requests = [e for e in self.requests if e.driver.broker.broker_id != broker_id]

"""Brings the states of share partitions to their coordinators: here at once, to others by wire.

What passes by itself (a coordinator that moves or loads, a topic that is being made) is tried again
for a while. Source: Kafka's DefaultStatePersister and PersisterStateManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...client.network.connection import Connection
from ...common.errors import ErrorCode
from ...common.internal_topics import SHARE_GROUP_STATE
from ...config.broker_config import BrokerConfig
from ...coordinator.share.operations import Operation, StateAnswer, StateCallback
from ...metadata.metadata_cache import MetadataCache
from ...replication.replica_manager import ReplicaManager
from ...runtime.clock import Clock
from ...runtime.timers import Timers
from ..interbroker.broker_channel import BatchSender
from .state_messages import VERSIONS, answer_in, request_of

if TYPE_CHECKING:
    from ...coordinator.share.coordinator import ShareCoordinator

RETRY_BACKOFF_MS = 100
ATTEMPTS_MAX = 300
"""Half a minute at least, which is longer than a partition of `__share_group_state` is without a
leader, as a rule; so are the five of Kafka, which wait for twice as long each time. Attempts count
and not time, for one may take long: its coordinator was frozen, or this broker. Java's share
consumers end by an error of a coordinator."""

RETRIABLE = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Submitted(NamedTuple):
    """An operation on its way; `attempts` is how often it was tried before."""

    operation: Operation
    respond: StateCallback
    attempts: int = 0


class StateChannels(Protocol):
    """To the other brokers, as `BrokerChannels`."""

    def put(self, broker_id: int, item: Submitted) -> None:
        """Have an operation sent to a broker, soon."""


class StatePersister:
    """The `Persister` of a broker that runs.

    Args:
        config: the broker's settings.
        clock, timers: for retries.
        replica_manager: flushed after a retry.
        cache: says which brokers lead the partitions of `__share_group_state`.
        coordinator: the share coordinator of this broker.
        make_channels: makes those to the other brokers.
        create_topic: has `__share_group_state` made.
    """

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timers: Timers,
        replica_manager: ReplicaManager,
        cache: MetadataCache,
        coordinator: Callable[[], ShareCoordinator],
        make_channels: Callable[[BatchSender[Submitted]], StateChannels],
        create_topic: Callable[[], None],
    ) -> None:
        self._config = config
        self._clock = clock
        self._timers = timers
        self._replica_manager = replica_manager
        self._cache = cache
        self._coordinator = coordinator
        self._create_topic = create_topic
        self._channels = make_channels(
            BatchSender(lambda: VERSIONS, _take_one, self._exchange, self._not_answered)
        )

    def submit(self, operation: Operation, respond: StateCallback) -> None:
        """Have an operation done; see `Persister.submit`. Where it is answered later, a flush
        follows what the callee stages."""
        self._route(Submitted(operation, respond))

    def _route(self, submitted: Submitted) -> None:
        if not self._cache.contains(SHARE_GROUP_STATE):
            self._create_topic()
            self._answered(submitted, StateAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
            return
        coordinator = self._coordinator()
        number = coordinator.partition_for(submitted.operation.key.text)
        state = self._cache.get_partition_info(SHARE_GROUP_STATE, number)
        if state is not None and state.leader == self._cache.broker_id:
            coordinator.submit(submitted.operation, partial(self._answered, submitted))
        elif state is None or not self._cache.has_alive_broker(state.leader):
            self._answered(submitted, StateAnswer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            self._channels.put(state.leader, submitted)

    def _answered(self, submitted: Submitted, answer: StateAnswer) -> None:
        attempts = submitted.attempts + 1
        if answer.error in RETRIABLE and attempts < ATTEMPTS_MAX:
            at_ms = self._clock.monotonic_ms() + RETRY_BACKOFF_MS
            again = submitted._replace(attempts=attempts)
            self._timers.schedule(at_ms, partial(self._try_again, again))
        else:
            submitted.respond(answer)

    def _try_again(self, submitted: Submitted) -> None:
        self._route(submitted)
        self._replica_manager.flush()

    async def _exchange(self, connection: Connection, items: list[Submitted]) -> None:
        """Send one operation. Raises ClientError."""
        (submitted,) = items
        response = await connection.request(
            request_of(submitted.operation), timeout_ms=self._config["request.timeout.ms"]
        )
        self._answered(submitted, answer_in(submitted.operation, response))

    def _not_answered(self, items: list[Submitted]) -> None:
        for submitted in items:
            self._answered(submitted, StateAnswer(ErrorCode.NETWORK_EXCEPTION))


def _take_one(waiting: deque[Submitted]) -> list[Submitted]:
    return [waiting.popleft()]

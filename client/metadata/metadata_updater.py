"""Whom to ask for metadata, and what counts as a sign that it is stale.

The decisions of Kafka's `NetworkClient.DefaultMetadataUpdater`, without trio. A shell asks
`next_step` whenever something happened, does what it says, and reports what came of it.

Five things make the metadata suspect (article 002, section 2); each has a method here:

| article | method |
|---|---|
| 1: a connection could not be opened | `connection_failed` |
| 2: a connection was lost | `connection_lost` |
| 3: a request timed out | `request_timed_out` |
| 4: a partition has no known leader | `leader_unknown` |
| 5: an answer says so: an error, or none came | `partition_error` |
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from ...common.errors import ErrorCode
from ..error_kinds import STALE_METADATA_ERRORS
from ..errors import AuthenticationError, ClientError
from ..network.node_selection import LeastLoaded, least_loaded_node
from ..network.node_states import NodeStates
from ..settings import REBOOTSTRAP, ClientSettings
from .cluster import Node
from .metadata import NEVER_MS, Metadata, MetadataQuery

if TYPE_CHECKING:
    from ...protocol import messages


class Wait(NamedTuple):
    """Nothing to do until something happens, or so many milliseconds have passed (None:
    however long it takes)."""

    milliseconds: int | None


class Ask(NamedTuple):
    """Send a metadata request to this node, which is connected."""

    node: Node
    query: MetadataQuery


class Connect(NamedTuple):
    """Open a connection to this node."""

    node: Node


class Rebootstrap(NamedTuple):
    """Close the connections to these nodes: the metadata has begun anew."""

    nodes: tuple[Node, ...]


Step = Wait | Ask | Connect | Rebootstrap


class MetadataUpdater:
    """Keeps a `Metadata` up to date.

    Args:
        metadata: what is kept.
        states: of the connections to the nodes.
        in_flight: how many requests a node has not answered yet.
        settings: the client's.
        random: where the search for a node begins.
    """

    def __init__(
        self,
        metadata: Metadata,
        states: NodeStates,
        in_flight: Callable[[int], int],
        settings: ClientSettings,
        random: Random,
    ) -> None:
        self.metadata = metadata
        self.in_progress: MetadataQuery | None = None
        """Requests sent to a broker and not answered yet."""
        self._states = states
        self._in_flight = in_flight
        self._settings = settings
        self._random = random
        self._may_rebootstrap = settings.metadata_recovery_strategy == REBOOTSTRAP
        self._attempts_since_ms: int | None = None

    # --- What to do --------------------------------------------------------------------------

    def next_step(self, now_ms: int) -> Step:
        """What to do at this moment; what it says is taken as begun."""
        if self._is_rebootstrap_due(now_ms):
            nodes = tuple(self.metadata.cluster.nodes.values())
            self._rebootstrap(now_ms)
            return Rebootstrap(nodes)
        step = self._next_step(now_ms)
        return self._until_rebootstrap(step, now_ms) if isinstance(step, Wait) else step

    def least_loaded(self, now_ms: int) -> LeastLoaded:
        """The node with the fewest requests in flight, or the next best."""
        return least_loaded_node(
            tuple(self.metadata.cluster.nodes.values()),
            self._states,
            self._in_flight,
            self._settings.max_in_flight_requests_per_connection,
            self._random,
            now_ms,
        )

    def _next_step(self, now_ms: int) -> Step:
        if self.in_progress is not None:
            return Wait(None)
        wait_ms = self.metadata.time_to_next_update(now_ms)
        if wait_ms > 0:
            return Wait(wait_ms)
        if self._attempts_since_ms is None:
            self._attempts_since_ms = now_ms
        found = self.least_loaded(now_ms)
        if found.node is None and not found.is_any_ready and self._has_more_to_try():
            self._rebootstrap(now_ms)
            found = self.least_loaded(now_ms)
        if found.node is None:
            return self._wait_for_reconnect()
        return self._step_with(found.node, now_ms)

    def _step_with(self, node: Node, now_ms: int) -> Step:
        if self._can_send(node.id, now_ms):
            self.in_progress = self.metadata.next_query(now_ms)
            return Ask(node, self.in_progress)
        if self._is_any_connecting():
            # One connection at a time: it may be all that is needed.
            return self._wait_for_reconnect()
        if self._states.can_connect(node.id, now_ms):
            return Connect(node)
        return Wait(None)  # It is being prepared.

    def _wait_for_reconnect(self) -> Wait:
        return Wait(max(self._settings.reconnect_backoff_ms, 1))

    def _has_more_to_try(self) -> bool:
        """Whether the bootstrap list says anything that is not tried already."""
        return self._may_rebootstrap and not self.metadata.cluster.is_bootstrap

    def _can_send(self, node_id: int, now_ms: int) -> bool:
        in_flight_max = self._settings.max_in_flight_requests_per_connection
        return self._states.is_ready(node_id, now_ms) and self._in_flight(node_id) < in_flight_max

    def _is_any_connecting(self) -> bool:
        return any(self._states.is_connecting(node) for node in self.metadata.cluster.nodes)

    # --- What came of it ---------------------------------------------------------------------

    def answered(
        self, response: messages.MetadataResponse, now_ms: int, *, has_reliable_epochs: bool = True
    ) -> None:
        """The answer to what `Ask` said came; one without brokers counts as failed, for a
        broker that just starts knows none yet."""
        query, self.in_progress = self.in_progress, None
        if response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED and self._may_rebootstrap:
            self._attempts_since_ms = NEVER_MS
        elif not response.brokers:
            self.metadata.failed_update(now_ms)
        else:
            self.metadata.update(
                response, now_ms, query=query, has_reliable_epochs=has_reliable_epochs
            )
            self._attempts_since_ms = None

    def failed(self, now_ms: int, fatal: ClientError | None = None) -> None:
        """What `Ask` said was not answered.

        Args:
            now_ms: the moment.
            fatal: what makes waiting for metadata pointless, if it does.
        """
        self.in_progress = None
        if fatal is not None:
            self.metadata.fatal_error(fatal)
        self.metadata.failed_update(now_ms)

    # --- What makes the metadata suspect -----------------------------------------------------

    def connection_failed(self, now_ms: int, failure: ClientError | None = None) -> None:
        """A connection could not be opened: the broker may be elsewhere now."""
        self._disconnected(now_ms, failure)

    def connection_lost(self, now_ms: int, failure: ClientError | None = None) -> None:
        """A connection ended: the broker may be gone, and others lead its partitions."""
        self._disconnected(now_ms, failure)

    def request_timed_out(self, now_ms: int, failure: ClientError | None = None) -> None:
        """A request was not answered in time: the broker may hang."""
        self._disconnected(now_ms, failure)

    def leader_unknown(self, topic: str, now_ms: int) -> None:
        """Something is to be sent to a partition's leader, and there is none, or its node is
        unknown. The topic may have expired meanwhile, so it is requested anew."""
        self.metadata.add_topic(topic, now_ms)
        self.metadata.request_update(is_retry=True)

    def partition_error(self, code: int) -> bool:
        """A partition was answered with an error. Returns whether that means stale metadata."""
        is_stale = code in STALE_METADATA_ERRORS
        if is_stale:
            self.metadata.request_update(is_retry=True)
        return is_stale

    def _disconnected(self, now_ms: int, failure: ClientError | None) -> None:
        if self.in_progress is None and self.metadata.time_to_next_update(now_ms) == 0:
            # The connection was for this update.
            self.failed(now_ms)
        if isinstance(failure, AuthenticationError):
            self.metadata.fatal_error(failure)
        self.metadata.request_update(is_retry=True)

    # --- Beginning again ---------------------------------------------------------------------

    def _is_rebootstrap_due(self, now_ms: int) -> bool:
        since_ms = self._attempts_since_ms
        trigger_ms = self._settings.metadata_recovery_rebootstrap_trigger_ms
        return self._may_rebootstrap and since_ms is not None and now_ms - since_ms > trigger_ms

    def _rebootstrap(self, now_ms: int) -> None:
        self.metadata.rebootstrap()
        self._attempts_since_ms = now_ms

    def _until_rebootstrap(self, step: Wait, now_ms: int) -> Wait:
        if not self._may_rebootstrap or self._attempts_since_ms is None:
            return step
        trigger_ms = self._settings.metadata_recovery_rebootstrap_trigger_ms
        left_ms = max(self._attempts_since_ms + trigger_ms + 1 - now_ms, 0)
        waits_ms = left_ms if step.milliseconds is None else min(step.milliseconds, left_ms)
        return Wait(waits_ms)

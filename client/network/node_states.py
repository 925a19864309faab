"""The state of the connection to each node, and when it may be connected to again.

Kafka's `ClusterConnectionStates`, without trio: moments are monotonic milliseconds handed in.
What can happen is a table; anything else is a bug and raises.
"""

from __future__ import annotations

from enum import Enum
from random import Random

from ..metadata.metadata import NEVER_MS
from ..settings import ClientSettings
from .backoff import ExponentialBackoff


class ConnectionState(Enum):
    """How far the connection to a node is."""

    CONNECTING = "connecting"
    """TCP, then TLS."""
    PREPARING = "preparing"
    """Asking for the broker's versions, then authenticating (Kafka: CHECKING_API_VERSIONS)."""
    READY = "ready"
    DISCONNECTED = "disconnected"
    AUTHENTICATION_FAILED = "authentication failed"


class Event(Enum):
    """What can happen to a connection."""

    CONNECT = "connect"
    CONNECTED = "connected"
    PREPARED = "prepared"
    DISCONNECT = "disconnect"
    REFUSED = "refused"


TRANSITIONS: dict[tuple[ConnectionState, Event], ConnectionState] = {
    (ConnectionState.DISCONNECTED, Event.CONNECT): ConnectionState.CONNECTING,
    (ConnectionState.AUTHENTICATION_FAILED, Event.CONNECT): ConnectionState.CONNECTING,
    (ConnectionState.CONNECTING, Event.CONNECTED): ConnectionState.PREPARING,
    (ConnectionState.CONNECTING, Event.DISCONNECT): ConnectionState.DISCONNECTED,
    (ConnectionState.CONNECTING, Event.REFUSED): ConnectionState.AUTHENTICATION_FAILED,
    (ConnectionState.PREPARING, Event.PREPARED): ConnectionState.READY,
    (ConnectionState.PREPARING, Event.DISCONNECT): ConnectionState.DISCONNECTED,
    (ConnectionState.PREPARING, Event.REFUSED): ConnectionState.AUTHENTICATION_FAILED,
    (ConnectionState.READY, Event.DISCONNECT): ConnectionState.DISCONNECTED,
    (ConnectionState.READY, Event.REFUSED): ConnectionState.AUTHENTICATION_FAILED,
}
"""A certificate is refused while connecting, credentials while preparing, or when a client logs in
again."""

GONE = (ConnectionState.DISCONNECTED, ConnectionState.AUTHENTICATION_FAILED)


class NodeState:
    """What is remembered of one node."""

    __slots__ = (
        "failed_attempts",
        "failed_connects",
        "last_attempt_ms",
        "reconnect_backoff_ms",
        "setup_timeout_ms",
        "state",
        "throttled_until_ms",
    )

    def __init__(self, reconnect_backoff_ms: int, setup_timeout_ms: int) -> None:
        self.state = ConnectionState.DISCONNECTED
        self.last_attempt_ms = NEVER_MS
        self.failed_attempts = 0
        self.failed_connects = 0
        self.reconnect_backoff_ms = reconnect_backoff_ms
        self.setup_timeout_ms = setup_timeout_ms
        self.throttled_until_ms = NEVER_MS

    def on(self, event: Event) -> None:
        """Go to the next state.

        Raises:
            RuntimeError: this cannot happen in the state.
        """
        following = TRANSITIONS.get((self.state, event))
        if following is None:
            raise RuntimeError(f"{event.value!r} cannot happen to a node that is {self.state}")
        self.state = following


class NodeStates:
    """The nodes' states by their ids; a node never heard of is disconnected.

    Args:
        settings: backoffs and connection setup timeouts.
        random: their jitter.
    """

    def __init__(self, settings: ClientSettings, random: Random) -> None:
        self._reconnect_backoff = ExponentialBackoff(
            settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, random
        )
        self._setup_timeout = ExponentialBackoff(
            settings.socket_connection_setup_timeout_ms,
            settings.socket_connection_setup_timeout_max_ms,
            random,
        )
        self._nodes: dict[int, NodeState] = {}

    def state(self, node_id: int) -> ConnectionState:
        """How far the connection to a node is."""
        node = self._nodes.get(node_id)
        return ConnectionState.DISCONNECTED if node is None else node.state

    def can_connect(self, node_id: int, now_ms: int) -> bool:
        """Whether there is no connection, and the backoff since the last attempt is over."""
        node = self._nodes.get(node_id)
        if node is None:
            return True
        return node.state in GONE and now_ms - node.last_attempt_ms >= node.reconnect_backoff_ms

    def connection_delay_ms(self, node_id: int, now_ms: int) -> int:
        """How long to wait before connecting: what is left of the backoff."""
        node = self._nodes.get(node_id)
        if node is None or node.state not in GONE:
            return 0
        return max(node.last_attempt_ms + node.reconnect_backoff_ms - now_ms, 0)

    def is_preparing(self, node_id: int) -> bool:
        """Whether a connection is on its way."""
        return self.state(node_id) in (ConnectionState.CONNECTING, ConnectionState.PREPARING)

    def is_connecting(self, node_id: int) -> bool:
        """Whether the socket is not open yet."""
        return self.state(node_id) is ConnectionState.CONNECTING

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Whether requests may be sent now: connected, and not throttled."""
        node = self._nodes.get(node_id)
        if node is None or node.state is not ConnectionState.READY:
            return False
        return node.throttled_until_ms <= now_ms

    def last_attempt_ms(self, node_id: int) -> int:
        """When a connection to the node was last begun or ended."""
        node = self._nodes.get(node_id)
        return NEVER_MS if node is None else node.last_attempt_ms

    def setup_timeout_ms(self, node_id: int) -> int:
        """How long the next connection may take to be opened."""
        return self._node(node_id).setup_timeout_ms

    def throttle_delay_ms(self, node_id: int, now_ms: int) -> int:
        """The throttle time that the broker answered (KIP-219)."""
        node = self._nodes.get(node_id)
        return 0 if node is None else max(node.throttled_until_ms - now_ms, 0)

    def connecting(self, node_id: int, now_ms: int) -> None:
        """A connection is being opened."""
        node = self._node(node_id)
        node.on(Event.CONNECT)
        node.last_attempt_ms = now_ms

    def connected(self, node_id: int) -> None:
        """The socket is open."""
        node = self._node(node_id)
        node.on(Event.CONNECTED)
        self._reset_setup_timeout(node)

    def ready(self, node_id: int) -> None:
        """Requests may be sent: earlier failures are forgotten."""
        node = self._node(node_id)
        node.on(Event.PREPARED)
        node.failed_attempts = 0
        node.reconnect_backoff_ms = self._reconnect_backoff.wait_ms(0)

    def disconnected(self, node_id: int, now_ms: int) -> None:
        """The connection ended, or could not be opened: back off, for longer each time."""
        node = self._node(node_id)
        if node.state is ConnectionState.CONNECTING:
            node.failed_connects += 1
            node.setup_timeout_ms = self._setup_timeout.wait_ms(node.failed_connects)
        else:
            self._reset_setup_timeout(node)
        node.on(Event.DISCONNECT)
        self._back_off(node, now_ms)

    def authentication_failed(self, node_id: int, now_ms: int) -> None:
        """The broker, or its certificate, was refused: back off likewise."""
        node = self._node(node_id)
        node.on(Event.REFUSED)
        self._back_off(node, now_ms)

    def throttle(self, node_id: int, until_ms: int) -> None:
        """The broker asks for a pause (KIP-219); an earlier, longer one stands."""
        node = self._node(node_id)
        node.throttled_until_ms = max(node.throttled_until_ms, until_ms)

    def remove(self, node_id: int) -> None:
        """Forget a node, its backoff included."""
        self._nodes.pop(node_id, None)

    def _node(self, node_id: int) -> NodeState:
        node = self._nodes.get(node_id)
        if node is None:
            node = NodeState(self._reconnect_backoff.wait_ms(0), self._setup_timeout.wait_ms(0))
            self._nodes[node_id] = node
        return node

    def _back_off(self, node: NodeState, now_ms: int) -> None:
        node.last_attempt_ms = now_ms
        node.reconnect_backoff_ms = self._reconnect_backoff.wait_ms(node.failed_attempts)
        node.failed_attempts += 1

    def _reset_setup_timeout(self, node: NodeState) -> None:
        node.failed_connects = 0
        node.setup_timeout_ms = self._setup_timeout.wait_ms(0)

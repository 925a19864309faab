"""A client's settings: Kafka's names and defaults, in Python's spelling."""

from __future__ import annotations

from ..common.named_tuple import NamedTuple

REBOOTSTRAP = "rebootstrap"
RECOVERY_STRATEGIES = ("none", REBOOTSTRAP)

RESPONSE_MAX_BYTES = 256 * 1024 * 1024


class ClientSettings(NamedTuple):
    """What a client waits for, and how long; times are milliseconds.

    Each is Kafka's setting of that name with dots, except `response_max_bytes`: Kafka's
    clients take answers of any size.
    """

    client_id: str = "odradek"
    request_timeout_ms: int = 30_000
    """How long a request may be unanswered; then its connection is closed."""
    max_in_flight_requests_per_connection: int = 5
    retry_backoff_ms: int = 100
    """Before anything is tried again, metadata included; doubles each time."""
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    """Before a node is connected to again; doubles with each failure."""
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    """For TCP, and TLS; doubles with each failure."""
    socket_connection_setup_timeout_max_ms: int = 30_000
    connections_max_idle_ms: int = 540_000
    """A connection unused for longer is closed; -1: never."""
    metadata_max_age_ms: int = 300_000
    """Metadata older than this is refreshed though nothing seems wrong."""
    metadata_max_idle_ms: int = 300_000
    """A topic that was not used during this time is forgotten; -1: never."""
    metadata_recovery_strategy: str = REBOOTSTRAP
    """"rebootstrap": begin again with the bootstrap addresses when no known node can be
    reached (KIP-899); or "none"."""
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    """Begin again, too, after so long without metadata (KIP-1102)."""
    max_block_ms: int = 60_000
    """How long a caller waits for metadata, unless it says otherwise."""
    allow_auto_create_topics: bool = True
    """Whether asking for a topic may create it, if the broker does that."""
    response_max_bytes: int = RESPONSE_MAX_BYTES
    """A larger answer closes the connection."""


def check_settings(settings: ClientSettings) -> ClientSettings:
    """The settings, if they make sense.

    Raises:
        ValueError: one is out of its range; the message names it.
    """
    for name, value in settings._asdict().items():
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        least = 1 if name in _AT_LEAST_ONE else -1 if name in _MAY_BE_NEVER else 0
        if value < least:
            raise ValueError(f"{name}={value} is not possible: {least} is the least")
    if settings.metadata_recovery_strategy not in RECOVERY_STRATEGIES:
        raise ValueError(
            f"metadata_recovery_strategy={settings.metadata_recovery_strategy!r} is neither "
            + " nor ".join(repr(strategy) for strategy in RECOVERY_STRATEGIES)
        )
    return settings


_AT_LEAST_ONE = {"max_in_flight_requests_per_connection", "request_timeout_ms"}
_MAY_BE_NEVER = {"connections_max_idle_ms", "metadata_max_idle_ms"}

"""A producer's settings: Kafka's names and defaults, in Python's spelling."""

from __future__ import annotations

from typing import NamedTuple

from ...common.sentinels import ACKS_ALL
from ...protocol.compression.codecs import Compression
from ..settings import ClientSettings

IN_FLIGHT_MAX_WITH_IDEMPOTENCE = 5
"""Brokers remember the last five batches of a producer."""

RETRIES_MAX = 0x7FFFFFFF


class ProducerSettings(NamedTuple):
    """What a producer waits for, and how much it keeps; times are milliseconds, sizes bytes.

    Each is Kafka's setting of that name with dots. `request.timeout.ms`, `retry.backoff.ms`,
    `max.block.ms` and `max.in.flight.requests.per.connection` are the client's (`ClientSettings`).
    """

    acks: int = ACKS_ALL
    """-1: all replicas in sync have a batch before it is answered; 1: the leader has; 0: nobody
    answers."""
    enable_idempotence: bool | None = None
    """Whether a batch that had to be sent again may not be there twice. None: yes with acks=-1."""
    compression_type: Compression = Compression.NONE
    linger_ms: int = 5
    """How long a batch that is not full waits for more records."""
    batch_size: int = 16_384
    """How large a batch gets, before compression; a larger record makes up a batch of its own."""
    buffer_memory: int = 32 * 1024 * 1024
    """How much unsent and unanswered records may take; who sends more waits."""
    max_request_size: int = 1024 * 1024
    """The most of batches in one request, and the largest record, before compression."""
    delivery_timeout_ms: int = 120_000
    """From the first record of a batch until it is answered or given up."""
    retries: int = RETRIES_MAX
    """How often a batch is sent again; `delivery_timeout_ms` is the better limit."""
    transactional_id: str | None = None
    """The name by which a restarted producer goes on, and the one before it is fenced (KIP-98)."""
    transaction_timeout_ms: int = 60_000
    """A transaction that is open for longer is aborted by its coordinator."""

    @property
    def is_idempotent(self) -> bool:
        """Whether batches carry sequence numbers."""
        if self.enable_idempotence is None:
            return self.acks == ACKS_ALL
        return self.enable_idempotence

    def checked(self, client: ClientSettings) -> ProducerSettings:
        """The settings, if they make sense together with the client's.

        Raises:
            ValueError: one is out of its range, or two contradict each other; the message names
                them.
        """
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name}={value} is not possible: {least} is the least")
        if self.acks not in (-1, 0, 1):
            raise ValueError(f"acks={self.acks} is none of -1 (all), 0 and 1")
        if self.is_idempotent and self.acks != ACKS_ALL:
            raise ValueError(f"enable_idempotence=True needs acks=-1 (all), not {self.acks}")
        if self.transactional_id is not None and not self.is_idempotent:
            raise ValueError(
                f"transactional_id={self.transactional_id!r} needs enable_idempotence=True, "
                "and so acks=-1"
            )
        if self.transactional_id == "":
            raise ValueError("transactional_id is empty")
        in_flight_max = client.max_in_flight_requests_per_connection
        if self.is_idempotent and in_flight_max > IN_FLIGHT_MAX_WITH_IDEMPOTENCE:
            raise ValueError(
                f"max_in_flight_requests_per_connection={in_flight_max} is not possible with "
                f"enable_idempotence: {IN_FLIGHT_MAX_WITH_IDEMPOTENCE} is the most"
            )
        if self.delivery_timeout_ms < self.linger_ms + client.request_timeout_ms:
            raise ValueError(
                f"delivery_timeout_ms={self.delivery_timeout_ms} is less than linger_ms="
                f"{self.linger_ms} and request_timeout_ms={client.request_timeout_ms} together"
            )
        return self


_LEAST = {
    "linger_ms": 0,
    "batch_size": 0,
    "buffer_memory": 1,
    "max_request_size": 1,
    "delivery_timeout_ms": 0,
    "retries": 0,
    "transaction_timeout_ms": 1,
}

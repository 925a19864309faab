"""What the transaction coordinator takes from the broker's configuration, and its own limits."""

from __future__ import annotations

from typing import NamedTuple

from ..runtime import ConfigurationValues
from ..shards import LOAD_SLICE_BYTES

TOMBSTONE_BATCH_BYTES = 16 * 1024
"""Expired transactional ids are removed in batches of this size (Kafka's 16384)."""

APPEND_RETRY_BACKOFF_MS = 100
"""When the end of a transaction is appended again, if too few replicas were there."""

NO_TIME_LIMIT_MS = 2**31 - 1
"""The timeout of a transaction that another system decides about (KIP-939): never over."""


class TransactionSettings(NamedTuple):
    """The settings that transactions obey; the defaults are Kafka's."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    append_timeout_ms: int = 30_000
    topic_partitions: int = 50
    load_slice_bytes: int = LOAD_SLICE_BYTES

    @classmethod
    def from_config(cls, config: ConfigurationValues) -> TransactionSettings:
        """Read the settings out of a broker's configuration."""
        return cls(
            max_timeout_ms=config["transaction.max.timeout.ms"],
            id_expiration_ms=config["transactional.id.expiration.ms"],
            abort_timed_out_interval_ms=config[
                "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            ],
            remove_expired_interval_ms=config[
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ],
            append_timeout_ms=config["request.timeout.ms"],
            topic_partitions=config["transaction.state.log.num.partitions"],
            load_slice_bytes=min(
                config["transaction.state.log.load.buffer.size"], LOAD_SLICE_BYTES
            ),
        )

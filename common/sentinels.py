"""The values that stand for "none" or "no limit" in Kafka's protocol and files, each once."""

from __future__ import annotations

NO_OFFSET = -1
NO_EPOCH = -1
"""No leader epoch is known (Kafka's UNDEFINED_EPOCH and NO_PARTITION_LEADER_EPOCH)."""
NO_LEADER = -1
NO_TIMESTAMP = -1
NO_SEQUENCE = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
ZERO_UUID = bytes(16)
"""The uuid of what has none (Kafka's Uuid.ZERO_UUID)."""

LATEST_TIMESTAMP = -1
"""In ListOffsets: the end of the log."""
EARLIEST_TIMESTAMP = -2
"""In ListOffsets: the start of the log."""
MAX_TIMESTAMP = -3
"""In ListOffsets: the first of the records that have the latest timestamp (KIP-734)."""

CONSUMER_REPLICA_ID = -1
DEBUGGING_REPLICA_ID = -2
"""Any replica answers it for its own log, followers included."""

INVALID_SESSION_ID = 0
"""The id of a fetch that is part of no session (KIP-227)."""
FINAL_EPOCH = -1
"""The epoch of a fetch that closes its session, or that is part of none (KIP-227)."""

ACKS_ALL = -1
"""Of a Produce: answer once all replicas in sync have the records."""

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
ISOLATION_LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)

FOREVER_MS = 1 << 62
"""A duration that does not end, or a moment that does not come."""

INT64_MAX = 2**63 - 1
"""The largest offset, timestamp or duration."""
INT32_MAX = 2**31 - 1
INT16_MAX = 2**15 - 1
"""The largest numbers of partitions, and of replicas, that a request can hold."""

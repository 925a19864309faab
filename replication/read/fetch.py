"""Fetches: what they request, and what they are answered (article 003)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...common.errors import ErrorCode
from ...common.named_tuple import NamedTuple
from ...common.sentinels import CONSUMER_REPLICA_ID, NO_EPOCH, NO_OFFSET
from ...common.topic_partition import TopicPartition
from ...runtime.steps import Steps
from ...storage.index.transaction_index import AbortedTxn
from ...storage.io.file_slice import FileSlice
from ..partition.partition import FetchIsolation


class FetchParams(NamedTuple):
    """What holds for all partitions of one fetch.

    `max_wait_ms` milliseconds at most for `min_bytes` to come together; `max_bytes` bounds
    the whole answer, though the first batch always fits.
    """

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: FetchIsolation
    replica_id: int = CONSUMER_REPLICA_ID
    rack: str = ""
    may_ask_followers: bool = False
    """Whether it is of a consumer that may be sent to a follower (KIP-392)."""
    replica_epoch: int = -1
    """The registration of the broker that asks as a follower; -1: it does not say."""

    @property
    def is_from_follower(self) -> bool:
        """Whether a replica asks, and no consumer."""
        return self.replica_id >= 0


class FetchPartition(NamedTuple):
    """What a fetch requests of one partition."""

    topic_partition: TopicPartition
    topic_id: bytes
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = NO_OFFSET


class FetchPartitionData(NamedTuple):
    """What one partition answers a fetch."""

    error: ErrorCode
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: FileSlice | bytes = b""
    aborted_transactions: Sequence[AbortedTxn] | None = None
    """Of readers of committed records: whose records from which offset on to leave out."""
    diverging_epoch: tuple[int, int] | None = None
    preferred_read_replica: int = -1


FetchResults = list[tuple[FetchPartition, FetchPartitionData]]
FetchCallback = Callable[[FetchResults | Steps[FetchResults]], None]
"""Gets what a fetch is answered, or where that is much, the work that reads it."""

"""Fetches: what is asked, what is read, and those that wait for more (article 003)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..protocol.errors import ErrorCode, KafkaError
from ..storage.file_slice import FileSlice
from ..storage.topic_partition import TopicPartition
from .delayed_operation import DelayedOperation
from .partition import NO_EPOCH, FetchIsolation

if TYPE_CHECKING:
    from .replica_manager import ReplicaManager

CONSUMER_REPLICA_ID = -1
NO_OFFSET = -1


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


class FetchPartition(NamedTuple):
    """What is asked of one partition."""

    topic_partition: TopicPartition
    topic_id: bytes
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = NO_OFFSET


class AbortedTransaction(NamedTuple):
    """A producer whose records from `first_offset` on were aborted."""

    producer_id: int
    first_offset: int


class FetchPartitionData(NamedTuple):
    """What one partition answers a fetch."""

    error: ErrorCode
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    records: FileSlice | bytes = b""
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    diverging_epoch: tuple[int, int] | None = None
    preferred_read_replica: int = -1


FetchResults = list[tuple[FetchPartition, FetchPartitionData]]
FetchCallback = Callable[[FetchResults], None]


class DelayedFetch(DelayedOperation):
    """A fetch that waits until enough bytes are there (Kafka's DelayedFetch).

    Each look re-reads only the partitions that moved on since the last one.
    """

    __slots__ = ("_callback", "_manager", "_params", "_partitions", "_seen")

    def __init__(
        self,
        manager: ReplicaManager,
        params: FetchParams,
        partitions: Sequence[FetchPartition],
        callback: FetchCallback,
    ) -> None:
        super().__init__()
        self._manager = manager
        self._params = params
        self._partitions = partitions
        self._callback = callback
        self._seen: dict[TopicPartition, tuple[int, int]] = {}

    def is_satisfied(self) -> bool:
        """Whether min_bytes are there, or any partition now answers with an error."""
        total = 0
        isolation = self._params.isolation
        for asked in self._partitions:
            partition = self._manager.get_partition(asked.topic_partition)
            if partition is None or not partition.is_leader:
                return True
            end = partition.readable_end(isolation)
            if asked.fetch_offset >= end and asked.fetch_offset <= partition.log_end_offset:
                continue
            seen = self._seen.get(asked.topic_partition)
            if seen is None or seen[0] != end:
                try:
                    partition.check_leader(asked.current_leader_epoch)
                    read = partition.read_records(
                        asked.fetch_offset, asked.max_bytes, isolation, minimum_one_batch=True
                    )
                except KafkaError:
                    return True
                seen = self._seen[asked.topic_partition] = (end, len(read.records))
            total += seen[1]
            if total >= self._params.min_bytes:
                return True
        return False

    def on_complete(self) -> None:
        """Read again, all partitions, and answer with whatever is there."""
        self._callback(self._manager.read_from_log(self._params, self._partitions))

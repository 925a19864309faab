"""Fetches that wait for more to be there (article 003, Kafka's DelayedFetch)."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ..partition.partition_table import PartitionTable
from ..read.fetch import FetchCallback, FetchParams, FetchPartition
from ..read.reading import read_from_log
from .delayed_operation import DelayedOperation
from .fetch_memory import FetchMemory


class DelayedFetch(DelayedOperation):
    """A fetch that waits until enough bytes are there (Kafka's DelayedFetch).

    Each look re-reads only the partitions that moved on since the last one, and none looks at
    those that are idle for its reader.
    """

    __slots__ = (
        "_callback",
        "_has_included",
        "_hosted",
        "_memory",
        "_params",
        "_partitions",
        "_seen",
    )

    def __init__(
        self,
        hosted: PartitionTable,
        params: FetchParams,
        partitions: Sequence[FetchPartition],
        callback: FetchCallback,
        memory: FetchMemory | None = None,
    ) -> None:
        super().__init__()
        self._hosted = hosted
        self._params = params
        self._partitions = partitions
        self._callback = callback
        self._memory = memory
        self._has_included = False
        self._seen: dict[TopicPartition, tuple[int, int]] = {}

    def include(self, asked: FetchPartition) -> None:
        """Look at a partition, too, that was idle so far."""
        self._partitions = [*self._partitions, asked]
        self._has_included = True

    def is_satisfied(self) -> bool:
        """Whether min_bytes are there, or any partition now answers with an error."""
        total = 0
        isolation = self._params.isolation
        must_lead = not self._params.may_ask_followers
        for asked in self._partitions:
            partition = self._hosted.get(asked.topic_partition)
            if partition is None:
                return True
            end = partition.readable_end(isolation)
            seen = self._seen.get(asked.topic_partition)
            try:
                # Asked each time: the leader's epoch may be another one by now.
                partition.check_leader(asked.current_leader_epoch, must_lead=must_lead)
                if end <= asked.fetch_offset <= partition.log_end_offset:
                    continue
                if self._hosted.must_wait(partition, self._params):
                    continue
                if seen is None or seen[0] != end:
                    read = partition.read_records(
                        asked.fetch_offset, asked.max_bytes, isolation, minimum_one_batch=True
                    )
                    seen = self._seen[asked.topic_partition] = (end, len(read.records))
            except KafkaError:
                return True
            total += seen[1]
            if total >= self._params.min_bytes:
                return True
        return False

    def on_complete(self) -> None:
        """Read again, all partitions that are not idle, and answer with whatever is there."""
        partitions, memory = self._partitions, self._memory
        if memory is not None:
            if self._has_included:
                partitions = memory.in_order(partitions)
            memory.wait_no_more()
        self._callback(read_from_log(self._hosted, self._params, partitions))

"""Deletions of records that wait for the replicas (KIP-107, Kafka's DelayedDeleteRecords)."""

from __future__ import annotations

from collections.abc import Callable

from ...common.errors import ErrorCode
from ...common.named_tuple import NamedTuple
from ...common.sentinels import NO_OFFSET
from ...common.topic_partition import TopicPartition
from ..partition.partition import Partition
from .delayed_operation import DelayedOperation

DeleteRecordsResults = dict[TopicPartition, tuple[ErrorCode, int]]
"""By partition: error and low watermark."""

DeleteRecordsCallback = Callable[[DeleteRecordsResults], None]


class Waiting(NamedTuple):
    """A partition, and the low watermark that it has to reach."""

    partition: Partition
    required_offset: int


class DelayedDeleteRecords(DelayedOperation):
    """Waits until no living replica has records before the offsets any more."""

    __slots__ = ("_callback", "_results", "_waiting")

    def __init__(self, callback: DeleteRecordsCallback) -> None:
        super().__init__()
        self._callback = callback
        self._waiting: dict[TopicPartition, Waiting] = {}
        self._results: DeleteRecordsResults = {}

    def wait_for(self, partition: Partition, required_offset: int) -> None:
        """One more partition, whose leader has deleted what lies before the offset."""
        self._waiting[partition.topic_partition] = Waiting(partition, required_offset)

    def fail(self, topic_partition: TopicPartition, error: ErrorCode) -> None:
        """One more partition, which is answered with an error."""
        self._results[topic_partition] = (error, NO_OFFSET)

    def is_satisfied(self) -> bool:
        """Whether all partitions are done with, one way or the other."""
        for topic_partition, (partition, required_offset) in list(self._waiting.items()):
            if not partition.is_leader:
                self.fail(topic_partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif (low := partition.low_watermark()) >= required_offset:
                self._results[topic_partition] = (ErrorCode.NONE, low)
            else:
                continue
            del self._waiting[topic_partition]
        return not self._waiting

    def on_complete(self) -> None:
        """Answer; what is not deleted everywhere by now has timed out."""
        for topic_partition in self._waiting:
            self.fail(topic_partition, ErrorCode.REQUEST_TIMED_OUT)
        self._callback(self._results)

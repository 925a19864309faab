"""What one reader fetches again and again, and which of it had nothing new when it was looked at.

A partition is idle for a reader that asks for its end and has been told all there is to tell. It
stays so until its log, its high watermark, its leadership or its replicas change, or the reader
asks for something else: the fetches in between need not look at it, and answer what they would
have found. Kafka looks at every partition of a session with each fetch (ReplicaManager's
readFromLog); what a fetch answers is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...common.topic_partition import TopicPartition
from ..partition.partition import Partition
from ..partition.partition_table import PartitionTable
from ..partition.replica import Replica
from ..read.fetch import FetchParams, FetchPartition, FetchPartitionData
from ..read.replica_selector import NO_REPLICA, select_leader
from .fetch_purgatory import FetchPurgatory

if TYPE_CHECKING:
    from .delayed_fetch import DelayedFetch


class IdlePartition:
    """A partition that had nothing new for a reader.

    Attributes:
        asked: what the reader asks of it.
        partition: which one it is.
        replica: the follower that asks, as the leader knows it; None of a consumer.
        leader_epoch: in which it was looked at.
    """

    __slots__ = ("asked", "leader_epoch", "partition", "replica")

    def __init__(
        self, asked: FetchPartition, partition: Partition, replica: Replica | None
    ) -> None:
        self.asked = asked
        self.partition = partition
        self.replica = replica
        self.leader_epoch = partition.leader_epoch

    def note_follower(self, fetched_ms: int) -> None:
        """Take note that a follower was at the end until its last fetch.

        Its fetches in between have told nobody; had they, the replica would be as it is now.
        """
        replica, partition = self.replica, self.partition
        if (
            replica is not None
            and partition.is_leader
            and partition.leader_epoch == self.leader_epoch
            and partition.remote_replicas.get(replica.broker_id) is replica
        ):
            replica.note_idle_fetches(self.asked.fetch_offset, fetched_ms)


class FetchMemory:
    """The idle partitions of one reader, and its fetch that waits.

    Args:
        purgatory: where its fetches wait; it tells of changes.

    Attributes:
        idle: the partitions to be left alone.
        waiting: the reader's fetch, while it waits.
        fetched_ms: when its last fetch came, monotonic.
        is_closed: whether the reader is gone.
    """

    __slots__ = ("_purgatory", "fetched_ms", "idle", "is_closed", "waiting")

    def __init__(self, purgatory: FetchPurgatory) -> None:
        self._purgatory = purgatory
        self.idle: dict[TopicPartition, IdlePartition] = {}
        self.waiting: DelayedFetch | None = None
        self.fetched_ms = 0
        self.is_closed = False

    # -- what kinds of readers differ in --------------------------------------------------

    def asks_for_idle(self) -> bool:
        """Whether the fetch at hand asks for any idle partition."""
        return bool(self.idle)

    def asks_for(self, idle: IdlePartition) -> bool:
        """Whether the fetch that waits asks for this one."""
        return True

    def in_order(self, partitions: Sequence[FetchPartition]) -> Sequence[FetchPartition]:
        """Partitions of the fetch that waits, in the order in which they are to be read."""
        raise AssertionError("every reader knows the order of its partitions")

    def woken(self, idle: IdlePartition) -> None:
        """A partition is idle no more."""

    # -- becoming idle, and not being so --------------------------------------------------

    def remember(self, idle: IdlePartition) -> None:
        """Leave a partition alone from now on."""
        topic_partition = idle.asked.topic_partition
        self.idle[topic_partition] = idle
        self._purgatory.watch_change(topic_partition, self)

    def partition_changed(self, topic_partition: TopicPartition) -> None:
        """An idle partition has changed: the fetch that waits has to look at it."""
        idle = self.idle.pop(topic_partition)
        idle.note_follower(self.fetched_ms)
        operation = self.waiting
        if operation is not None and self.asks_for(idle):
            operation.include(idle.asked)
            self._purgatory.watch_also(operation, topic_partition)
        self.woken(idle)

    def wake(self, topic_partition: TopicPartition) -> None:
        """Look at a partition again, if it is idle, with the next fetch."""
        idle = self.idle.pop(topic_partition, None)
        if idle is not None:
            self._purgatory.ignore_change(topic_partition, self)
            idle.note_follower(self.fetched_ms)
            self.woken(idle)

    def wake_all(self) -> None:
        """Look at all of them again with the next fetch."""
        for topic_partition in list(self.idle):
            self.wake(topic_partition)

    # -- the fetch that waits -------------------------------------------------------------

    def wait(self, operation: DelayedFetch) -> None:
        """A fetch of the reader waits from now on."""
        self.waiting = operation
        self._purgatory.waiting_readers[self] = None

    def wait_no_more(self) -> None:
        """It is completed."""
        self.waiting = None
        self._purgatory.waiting_readers.pop(self, None)

    def complete_waiting(self) -> None:
        """Answer the fetch that waits, for the reader does not wait for it any more."""
        if self.waiting is not None:
            self.waiting.force_complete()

    def close(self) -> None:
        """The reader is gone."""
        self.is_closed = True
        self.complete_waiting()
        self.wake_all()


def idle_partition(
    hosted: PartitionTable,
    params: FetchParams,
    asked: FetchPartition,
    data: FetchPartitionData,
) -> IdlePartition | None:
    """The partition as one to be left alone, if it has nothing new; to be asked right after a read.

    Args:
        hosted: the partitions hosted here.
        params: of the whole fetch.
        asked: of the partition.
        data: what it answered, which the reader is told.
    """
    if (
        data.error
        or len(data.records)
        or data.diverging_epoch is not None
        or data.preferred_read_replica != NO_REPLICA
        or (params.rack and hosted.select_replica is not select_leader)
    ):
        return None
    partition = hosted.get(asked.topic_partition)
    if (
        partition is None
        or asked.fetch_offset != partition.readable_end(params.isolation)
        or data.high_watermark != partition.high_watermark
        or data.log_start_offset != partition.log_start_offset
    ):
        return None
    if not params.is_from_follower:
        return IdlePartition(asked, partition, None)
    replica = partition.remote_replicas.get(params.replica_id)
    if replica is None or params.replica_id not in partition.isr:
        return None  # it may join the in-sync replicas with any fetch
    return IdlePartition(asked, partition, replica)

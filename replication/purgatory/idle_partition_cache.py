"""The partitions that one reader fetches again and again and that had nothing new last time.

A partition is idle for a reader that fetches at its end and has got everything before. It stays
so until its log, its high watermark, its leadership or its replicas change, or the reader
requests something else: the fetches in between need not look at it, and answer what they would
have found. Kafka looks at every partition of a session with each fetch (ReplicaManager's
readFromLog); what a fetch answers is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...runtime.steps import Steps, run_at_once
from ..partition.partition import Partition
from ..partition.partition_table import PartitionTable
from ..partition.replica import Replica
from ..read.fetch import FetchParams, FetchPartition, FetchPartitionData
from ..read.reading import PARTITIONS_AT_ONCE
from ..read.replica_selector import NO_REPLICA, select_leader
from .delayed_fetch import DelayedFetch, FetchPurgatory


class IdlePartition:
    """A partition that had nothing new for a reader.

    Attributes:
        requested: what the reader requests of it.
        partition: which one it is.
        replica: the fetching follower as the leader knows it; None of a consumer.
        leader_epoch: in which it was looked at.
    """

    __slots__ = ("leader_epoch", "partition", "replica", "requested")

    def __init__(
        self, requested: FetchPartition, partition: Partition, replica: Replica | None
    ) -> None:
        self.requested = requested
        self.partition = partition
        self.replica = replica
        self.leader_epoch = partition.leader_epoch

    def is_led_for(self, params: FetchParams) -> bool:
        """Whether the broker still answers the reader, if it did when the partition was read."""
        try:
            self.partition.check_leader(
                self.requested.current_leader_epoch, must_lead=not params.may_ask_followers
            )
        except KafkaError:
            return False
        return True

    def note_follower(self, fetched_ms: int) -> None:
        """Take note that a follower was at the end until its last fetch.

        Its fetches in between did not update the replica; it would be as it is now if they had.
        """
        replica, partition = self.replica, self.partition
        if (
            replica is not None
            and partition.is_leader
            and partition.leader_epoch == self.leader_epoch
            and partition.remote_replicas.get(replica.broker_id) is replica
        ):
            replica.note_idle_fetches(self.requested.fetch_offset, fetched_ms)


class IdlePartitionCache:
    """The idle partitions of one reader, and its fetch that waits.

    Args:
        purgatory: where its fetches wait; it calls `partition_changed`.

    Attributes:
        idle: the partitions that no fetch has to look at.
        idle_topics: topic to how many of its partitions are among them.
        waiting: the reader's fetch, while it waits.
        fetched_ms: when its last fetch came, monotonic.
        is_closed: whether the reader is gone.
    """

    __slots__ = (
        "_purgatory",
        "_snapshot",
        "_terms",
        "fetched_ms",
        "idle",
        "idle_topics",
        "is_closed",
        "waiting",
    )

    def __init__(self, purgatory: FetchPurgatory) -> None:
        self._purgatory = purgatory
        self._snapshot: object = None
        self._terms: tuple[object, ...] = ()
        self.idle: dict[TopicPartition, IdlePartition] = {}
        self.idle_topics: dict[str, int] = {}
        self.waiting: DelayedFetch | None = None
        self.fetched_ms = 0
        self.is_closed = False

    # -- what kinds of readers differ in --------------------------------------------------

    def in_order(self, partitions: Sequence[FetchPartition]) -> Sequence[FetchPartition]:
        """Partitions of the fetch that waits, in the order in which they are to be read."""
        raise AssertionError("every reader knows the order of its partitions")

    def on_active(self, idle: IdlePartition) -> None:
        """A partition is idle no more."""

    # -- idle and active partitions -------------------------------------------------------

    def add(self, idle: IdlePartition) -> None:
        """Take a partition for idle from now on."""
        topic_partition = idle.requested.topic_partition
        topic = topic_partition.topic
        self.idle[topic_partition] = idle
        self.idle_topics[topic] = self.idle_topics.get(topic, 0) + 1
        self._purgatory.watch_change(topic_partition, self)

    def partition_changed(self, topic_partition: TopicPartition) -> None:
        """An idle partition has changed: the fetch that waits has to look at it."""
        idle = self.idle.pop(topic_partition)
        idle.note_follower(self.fetched_ms)
        operation = self.waiting
        if operation is not None:
            operation.include(idle.requested)
            self._purgatory.watch_also(operation, topic_partition)
        self._note_active(idle)

    def mark_active(self, topic_partition: TopicPartition) -> None:
        """Look at a partition again, if it is idle, with the next fetch."""
        idle = self.idle.pop(topic_partition, None)
        if idle is not None:
            self._purgatory.ignore_change(topic_partition, self)
            idle.note_follower(self.fetched_ms)
            self._note_active(idle)

    def _note_active(self, idle: IdlePartition) -> None:
        topic = idle.requested.topic_partition.topic
        count = self.idle_topics[topic] - 1
        if count:
            self.idle_topics[topic] = count
        else:
            del self.idle_topics[topic]
        self.on_active(idle)

    def invalidate_unless(self, snapshot: object, terms: tuple[object, ...]) -> bool:
        """Have all partitions looked at again unless they were found idle on the same grounds.

        Args:
            snapshot: of the metadata, which is replaced and never changed.
            terms: what holds for the whole fetch and decides what its reader sees.

        Returns:
            False where they are many: it is to be done in steps.
        """
        if snapshot is not self._snapshot or terms != self._terms:
            if len(self.idle) > PARTITIONS_AT_ONCE:
                return False
            self.mark_all_active()
            self._snapshot, self._terms = snapshot, terms
        return True

    def invalidate_in_steps_unless(
        self, snapshot: object, terms: tuple[object, ...]
    ) -> Steps[None]:
        """The same, as work that yields after each partition."""
        if snapshot is not self._snapshot or terms != self._terms:
            yield from self.mark_all_active_in_steps()
            self._snapshot, self._terms = snapshot, terms

    def mark_all_active(self) -> None:
        """Look at all of them again with the next fetch."""
        run_at_once(self.mark_all_active_in_steps())

    def mark_all_active_in_steps(self) -> Steps[None]:
        """The same, as work that yields after each."""
        for topic_partition in list(self.idle):
            self.mark_active(topic_partition)
            yield

    # -- the fetch that waits -------------------------------------------------------------

    def start_waiting(self, operation: DelayedFetch) -> None:
        """A fetch of the reader waits from now on."""
        self.waiting = operation
        self._purgatory.waiting_readers[self] = None

    def stop_waiting(self) -> None:
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
        idle, self.idle, self.idle_topics = self.idle, {}, {}
        for topic_partition, each in idle.items():  # none of them becomes active
            self._purgatory.ignore_change(topic_partition, self)
            each.note_follower(self.fetched_ms)


def idle_partition(
    hosted: PartitionTable,
    params: FetchParams,
    requested: FetchPartition,
    data: FetchPartitionData,
) -> IdlePartition | None:
    """The partition as an idle one, if it has nothing new; to be called right after a read.

    Args:
        hosted: the partitions hosted here.
        params: of the whole fetch.
        requested: of the partition.
        data: what it answered, which the reader gets.
    """
    if (
        data.error
        or len(data.records)
        or data.diverging_epoch is not None
        or data.preferred_read_replica != NO_REPLICA
        or (params.rack and hosted.select_replica is not select_leader)
    ):
        return None
    partition = hosted.get(requested.topic_partition)
    if (
        partition is None
        or requested.fetch_offset != partition.readable_end(params.isolation)
        or data.high_watermark != partition.high_watermark
        or data.log_start_offset != partition.log_start_offset
    ):
        return None
    if not params.is_from_follower:
        return IdlePartition(requested, partition, None)
    replica = partition.remote_replicas.get(params.replica_id)
    if replica is None or params.replica_id not in partition.isr:
        return None  # it may join the in-sync replicas with any fetch
    if replica.log_end_offset != requested.fetch_offset:
        return None  # an older fetch of the follower came after this one; its next is to count
    return IdlePartition(requested, partition, replica)

"""Fetches that wait for data, and the readers that know which partitions have nothing new.

A fetch waits until enough bytes are there (article 003, Kafka's DelayedFetch). A reader that
fetches a thousand partitions again and again need not look at all of them each time: those that
had nothing new are idle until something about them changes. Each reader watches such a partition
once, not with each of its fetches, and hears of one change.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Protocol

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...runtime.timers import Timers
from ..partition.partition_table import PartitionTable
from ..read.fetch import FetchCallback, FetchParams, FetchPartition
from ..read.reading import read_from_log
from .delayed_operation import DelayedOperation, MonotonicClock, Purgatory, Watchers


class FetchReader(Protocol):
    """Who fetches again and again, as `IdlePartitionCache` does for a session or connection."""

    @property
    def idle(self) -> Sized:
        """Its idle partitions."""

    @property
    def waiting(self) -> DelayedFetch | None:
        """Its fetch that waits, if one does."""

    def partition_changed(self, topic_partition: TopicPartition) -> None:
        """An idle partition has changed."""

    def in_order(self, partitions: Sequence[FetchPartition]) -> Sequence[FetchPartition]:
        """Partitions of the fetch that waits, in the order in which they are to be read."""

    def stop_waiting(self) -> None:
        """The fetch that waited is completed."""


class FetchPurgatory(Purgatory[TopicPartition]):
    """Waiting fetches under their partitions, and the readers of partitions that are idle.

    Attributes:
        waiting_readers: those of which a fetch waits.
    """

    def __init__(self, timers: Timers, clock: MonotonicClock) -> None:
        super().__init__(timers, clock)
        self._readers: dict[TopicPartition, dict[FetchReader, None]] = {}
        self.waiting_readers: dict[FetchReader, None] = {}

    def watch_change(self, topic_partition: TopicPartition, reader: FetchReader) -> None:
        """Call a reader once when anything about the partition changes that readers see."""
        readers = self._readers.get(topic_partition)
        if readers is None:
            readers = self._readers[topic_partition] = {}
        readers[reader] = None

    def ignore_change(self, topic_partition: TopicPartition, reader: FetchReader) -> None:
        """Take `watch_change` back."""
        readers = self._readers.get(topic_partition)
        if readers is not None:
            readers.pop(reader, None)
            if not readers:
                del self._readers[topic_partition]

    def note_change(self, topic_partition: TopicPartition) -> bool:
        """Something about the partition has changed: its end, start, leadership or replicas.

        Returns whether a fetch waits for it, so that `check_and_complete` is to be called.
        """
        readers = self._readers.pop(topic_partition, None)
        if readers is not None:
            for reader in readers:
                reader.partition_changed(topic_partition)
        return topic_partition in self._watchers

    def watch_also(self, operation: DelayedOperation, topic_partition: TopicPartition) -> None:
        """Have an operation that waits already checked with this partition, too."""
        waiting = self._watchers.get(topic_partition)
        if waiting is None:
            waiting = self._watchers[topic_partition] = Watchers()
        waiting.add(operation)

    def sizes(self) -> tuple[int, int]:
        """As a purgatory's; an idle partition of a waiting fetch is an entry, too."""
        entries = [each for waiting in self._watchers.values() for each in waiting.operations]
        waiting = {id(each) for each in entries if not each.is_completed}
        waiting |= {id(reader.waiting) for reader in self.waiting_readers}
        idle = sum(len(reader.idle) for reader in self.waiting_readers)
        return len(waiting), len(entries) + idle


class DelayedFetch(DelayedOperation):
    """A fetch that waits until enough bytes are there (Kafka's DelayedFetch).

    Each look re-reads only the partitions that moved on since the last one, and none looks at
    those that are idle for its reader.
    """

    __slots__ = (
        "_callback",
        "_has_included",
        "_hosted",
        "_params",
        "_partitions",
        "_reader",
        "_seen",
    )

    def __init__(
        self,
        hosted: PartitionTable,
        params: FetchParams,
        partitions: Sequence[FetchPartition],
        callback: FetchCallback,
        reader: FetchReader | None = None,
    ) -> None:
        super().__init__()
        self._hosted = hosted
        self._params = params
        self._partitions = partitions
        self._callback = callback
        self._reader = reader
        self._has_included = False
        self._seen: dict[TopicPartition, tuple[int, int]] = {}

    def include(self, requested: FetchPartition) -> None:
        """Look at a partition, too, that was idle so far."""
        self._partitions = [*self._partitions, requested]
        self._has_included = True

    def is_satisfied(self) -> bool:
        """Whether min_bytes are there, or any partition now answers with an error."""
        total = 0
        isolation = self._params.isolation
        must_lead = not self._params.may_ask_followers
        for requested in self._partitions:
            partition = self._hosted.get(requested.topic_partition)
            if partition is None:
                return True
            end = partition.readable_end(isolation)
            seen = self._seen.get(requested.topic_partition)
            try:
                # Checked each time: the leader's epoch may be another one by now.
                partition.check_leader(requested.current_leader_epoch, must_lead=must_lead)
                if end <= requested.fetch_offset <= partition.log_end_offset:
                    continue
                if self._hosted.must_wait(partition, self._params):
                    continue
                if seen is None or seen[0] != end:
                    read = partition.read_records(
                        requested.fetch_offset,
                        requested.max_bytes,
                        isolation,
                        minimum_one_batch=True,
                    )
                    seen = self._seen[requested.topic_partition] = (end, len(read.records))
            except KafkaError:
                return True
            total += seen[1]
            if total >= self._params.min_bytes:
                return True
        return False

    def on_complete(self) -> None:
        """Read again, all partitions that are not idle, and answer with whatever is there."""
        partitions, reader = self._partitions, self._reader
        if reader is not None:
            if self._has_included:
                partitions = reader.in_order(partitions)
            reader.stop_waiting()
        self._callback(read_from_log(self._hosted, self._params, partitions))

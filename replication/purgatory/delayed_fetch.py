"""Fetches that wait for data, and the readers that know which partitions have nothing new.

A fetch waits until enough bytes are there (article 003, Kafka's DelayedFetch). A reader that
fetches a thousand partitions again and again need not look at all of them each time: those that
had nothing new are idle until something about them changes. Each reader watches such a partition
once, not with each of its fetches, and hears of one change.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Sized
from typing import Protocol

from ...common.errors import KafkaError
from ...common.topic_partition import TopicPartition
from ...runtime.steps import Steps, in_batches
from ...runtime.timers import Timers
from ..partition.partition_table import PartitionTable
from ..read.fetch import FetchCallback, FetchParams, FetchPartition, FetchResults
from ..read.reading import (
    PARTITIONS_AT_ONCE,
    PARTITIONS_PER_PIECE,
    Reading,
    ends_wait,
    read_from_log,
)
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

    def start_waiting(self, operation: DelayedFetch) -> None:
        """A fetch waits from now on."""

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

    When a partition has changed, that one alone is looked at; and none is that is idle for the
    reader.

    Args:
        hosted: the partitions hosted here.
        params: of the whole fetch.
        partitions: those that are not idle for its reader.
        callback: gets what it is answered.
        reader: who fetches, if its idle partitions are known.
    """

    __slots__ = (
        "_by_name",
        "_callback",
        "_hosted",
        "_params",
        "_partitions",
        "_reader",
        "_sizes",
        "_total",
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
        self._by_name: dict[Hashable, FetchPartition] | None = None
        self._callback = callback
        self._reader = reader
        self._sizes: dict[TopicPartition, int] | None = None
        self._total = 0

    def include(self, requested: FetchPartition) -> None:
        """Look at a partition, too, that was idle so far."""
        if self._by_name is None:
            self._by_name = {each.topic_partition: each for each in self._partitions}
        self._by_name[requested.topic_partition] = requested
        self._partitions = ()

    def try_complete(self, key: Hashable = None) -> bool:
        """Complete if enough bytes are there, or a partition now answers with an error.

        Args:
            key: the partition that has changed; None: any may have.
        """
        if self.is_completed:
            return False
        by_name = self._by_name
        for requested in self._partitions if by_name is None else (by_name[key],):
            if (key is None or requested.topic_partition == key) and self._is_due_by(requested):
                return self.force_complete()
        return False

    def _is_due_by(self, requested: FetchPartition) -> bool:
        """See how many bytes there are in a partition; whether the fetch is to be answered."""
        topic_partition = requested.topic_partition
        partition = self._hosted.get(topic_partition)
        if partition is None:
            return True
        params = self._params
        size = 0
        try:
            # Checked each time: the leader's epoch may be another one by now.
            partition.check_leader(
                requested.current_leader_epoch, must_lead=not params.may_ask_followers
            )
            end = partition.readable_end(params.isolation)
            if not (
                end <= requested.fetch_offset <= partition.log_end_offset
                or self._hosted.must_wait(partition, params)
            ):
                read = partition.read_records(
                    requested.fetch_offset,
                    requested.max_bytes,
                    params.isolation,
                    minimum_one_batch=True,
                )
                size = len(read.records)
        except KafkaError:
            return True
        sizes = self._sizes
        total = self._total + size
        if sizes is not None:
            total -= sizes.get(topic_partition, 0)
        if total >= params.min_bytes:
            return True
        if sizes is None:
            sizes = self._sizes = {}
        sizes[topic_partition] = size
        self._total = total
        return False

    def on_complete(self) -> None:
        """Read again, all partitions that are not idle, and answer with whatever is there."""
        partitions = self._stop()
        if len(partitions) > PARTITIONS_AT_ONCE:
            self._callback(Reading(self._hosted, self._params).read_in_steps(partitions))
        else:
            self._callback(read_from_log(self._hosted, self._params, partitions))

    def _stop(self) -> Sequence[FetchPartition]:
        """Look at nothing any more, for lists of watchers may refer to this for long.

        Returns the partitions in the order in which they are to be read.
        """
        partitions, by_name, reader = self._partitions, self._by_name, self._reader
        self._partitions = ()
        if by_name is not None:
            self._by_name = self._sizes = None
            if not partitions:  # some were included
                partitions = list(by_name.values())
                if reader is not None and reader.waiting is self:
                    partitions = reader.in_order(partitions)
        if reader is not None and reader.waiting is self:
            reader.stop_waiting()
        return partitions


class SteppedFetch(DelayedFetch):
    """One of many partitions, whose first reading is done in steps.

    Each partition is watched from before it is read: what changes in one that was read already
    is not missed.
    """

    __slots__ = ("_is_due", "_is_reading")

    def __init__(
        self,
        hosted: PartitionTable,
        params: FetchParams,
        partitions: Sequence[FetchPartition],
        callback: FetchCallback,
        reader: FetchReader | None = None,
    ) -> None:
        super().__init__(hosted, params, partitions, callback, reader)
        self._is_due = False
        self._is_reading = False

    def force_complete(self) -> bool:
        """Complete now, unless that has happened, or as soon as the first reading is done."""
        if self._is_reading:
            self._is_due = True
            return False
        return super().force_complete()

    def read_in_steps(self, purgatory: FetchPurgatory) -> Steps[FetchResults | None]:
        """Read all partitions for the first time; yields after some of them.

        Returns:
            what is to be answered; None where the fetch waits from now on.
        """
        self._is_reading = True
        self._by_name = {each.topic_partition: each for each in self._partitions}
        if self._reader is not None:
            self._reader.start_waiting(self)
        try:
            return (yield from self._read_and_watch(purgatory))
        finally:
            if self._is_reading:  # answered, or nobody waits for the answer any more
                self._is_reading = False
                self.is_completed = True
                self._stop()

    def _read_and_watch(self, purgatory: FetchPurgatory) -> Steps[FetchResults | None]:
        partitions, params = self._partitions, self._params
        reading = Reading(self._hosted, params, note_follower=True)
        total, is_final = 0, False
        for piece in in_batches(partitions, PARTITIONS_PER_PIECE):
            if not is_final:
                for requested in piece:
                    purgatory.watch_also(self, requested.topic_partition)
            for requested, data in reading.read(piece):
                total += len(data.records)
                is_final = is_final or total >= params.min_bytes or ends_wait(data)
                if total and not is_final:  # bounds on the whole may have held some of it back
                    self._is_due = self._is_due_by(requested) or self._is_due
            yield
        if is_final:
            return (yield from reading.finish())
        if self._is_due:  # by what has changed since it was read
            self.is_completed = True
            return (yield from Reading(self._hosted, params).read_in_steps(self._stop()))
        self._is_reading = False
        purgatory.watch(self, (), params.max_wait_ms)
        return None

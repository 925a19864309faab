"""The fetches that wait, and the readers that know which partitions have nothing new for them.

A reader that fetches a thousand partitions again and again does not look at them again and again:
those that had nothing new are left alone until something about them changes. Each reader watches
such a partition once, not with each of its fetches, and is told of one change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.topic_partition import TopicPartition
from .delayed_operation import DelayedOperation, Purgatory, Watchers

if TYPE_CHECKING:
    from .fetch_memory import FetchMemory


class FetchPurgatory(Purgatory[TopicPartition]):
    """Waiting fetches under their partitions, and the readers of partitions that are idle.

    Attributes:
        waiting_readers: those of which a fetch waits.
    """

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # those of a purgatory
        self._readers: dict[TopicPartition, dict[FetchMemory, None]] = {}
        self.waiting_readers: dict[FetchMemory, None] = {}

    def watch_change(self, topic_partition: TopicPartition, reader: FetchMemory) -> None:
        """Tell a reader once when anything about the partition changes that readers see."""
        readers = self._readers.get(topic_partition)
        if readers is None:
            readers = self._readers[topic_partition] = {}
        readers[reader] = None

    def ignore_change(self, topic_partition: TopicPartition, reader: FetchMemory) -> None:
        """Do not tell it any more."""
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
        """Have an operation that waits already asked when this partition is checked, too."""
        waiting = self._watchers.get(topic_partition)
        if waiting is None:
            waiting = self._watchers[topic_partition] = Watchers()
        waiting.add(operation)

    def sizes(self) -> tuple[int, int]:
        """As a purgatory's; an idle partition that a waiting fetch asks for is an entry, too."""
        entries = [each for waiting in self._watchers.values() for each in waiting.operations]
        waiting = {id(each) for each in entries if not each.is_completed}
        waiting |= {id(reader.waiting) for reader in self.waiting_readers}
        idle = sum(len(reader.idle) for reader in self.waiting_readers)
        return len(waiting), len(entries) + idle

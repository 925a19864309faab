"""The states of a fetcher's partitions, which know whether anything about them has changed."""

from __future__ import annotations

from typing import Any

from ...common.topic_partition import TopicPartition
from .fetcher_partition import PartitionFetchState


class FetchStates(dict[TopicPartition, PartitionFetchState]):
    """A dict in the order in which partitions are fetched, the first one first.

    Attributes:
        has_changed: whether a state came, went, was exchanged or has another place. Whoever has
            looked at all of them sets it back, and need not look again until it is set.
    """

    __slots__ = ("has_changed",)

    def __init__(self) -> None:
        super().__init__()
        self.has_changed = True

    def __setitem__(self, topic_partition: TopicPartition, state: PartitionFetchState) -> None:
        self.has_changed = True
        super().__setitem__(topic_partition, state)

    def __delitem__(self, topic_partition: TopicPartition) -> None:
        self.has_changed = True
        super().__delitem__(topic_partition)

    def pop(self, topic_partition: TopicPartition, *default: Any) -> Any:
        """As a dict's."""
        self.has_changed = True
        return super().pop(topic_partition, *default)

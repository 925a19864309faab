"""What the coordinator needs of what writes its markers into the partitions' logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ...common.errors import ErrorCode
from ...common.topic_partition import TopicPartition

MarkersWritten = Callable[[ErrorCode], None]
"""Called once: NONE when each partition has its marker or exists no longer; another code if
a partition's leader says that this broker is not the coordinator any more."""


class MarkersToWrite(NamedTuple):
    """The end of one transaction, to be written into each of its partitions.

    Attributes:
        transactional_id: whose transaction it is.
        coordinator_partition: of `__transaction_state`, that keeps it.
        coordinator_epoch: the leader epoch in which this broker leads that partition.
        producer_id: the id under which the records were written.
        producer_epoch: the epoch that the markers carry.
        committed: whether the records count.
        partitions: where markers are to be written; none at all is done at once.
        transaction_version: the generation of the producer's protocol, 0 to 2 (KIP-890).
    """

    transactional_id: str
    coordinator_partition: int
    coordinator_epoch: int
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    transaction_version: int


class MarkerSender(Protocol):
    """Writes markers to the leaders of partitions, and does not give up before it has."""

    def send(self, markers: MarkersToWrite, on_complete: MarkersWritten) -> None:
        """Write the markers; `on_complete` is called when that is over, never inside this call."""

    def drop(self, coordinator_partition: int) -> None:
        """Forget what is to be sent for a partition that is coordinated elsewhere now.

        The callbacks of what is forgotten are not called.
        """

    def missing(self, transactional_id: str) -> frozenset[TopicPartition] | None:
        """The partitions that have no marker yet; None if nothing is sent for the id."""

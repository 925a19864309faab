"""The other brokers, as far as replication needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from ..common.partition_state import LeaderAndIsr
from ..common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from .fetcher.fetch_state import InitialFetchState
    from .partition.partition import Partition


class Peers(Protocol):
    """What a broker of a cluster can do for its replicas."""

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is alive, as far as is known here."""

    def submit_isr_change(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Have a change of the ISR written, and call the partition with the outcome."""

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Begin to fetch partitions from their leaders."""

    def remove_fetchers(self, partitions: Collection[TopicPartition]) -> None:
        """No longer fetch partitions; what is on its way for them counts no more."""


class NoPeers:
    """Of a broker that is alone, or not yet in its cluster."""

    def is_alive(self, broker_id: int) -> bool:
        """Nobody is."""
        return False

    def submit_isr_change(self, partition: Partition, change: LeaderAndIsr) -> None:
        """It stays pending: the stricter ISR holds until it can be written."""

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        """There is nobody to fetch from."""

    def remove_fetchers(self, partitions: Collection[TopicPartition]) -> None:
        """Nothing is fetched."""

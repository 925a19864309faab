"""Replicas that follow their leader no more while a test holds them back."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...common.topic_partition import TopicPartition
from ...replication.fetcher.fetcher_partition import InitialFetchState
from ...replication.partition.isr_change import IsrChange
from ...replication.partition.partition import Partition
from ...replication.peers import Peers


class HeldReplicas:
    """The peers of a broker, but for the partitions that are held: those it does not fetch.

    Args:
        peers: what it stands in front of.

    Attributes:
        held: with how fetching begins once it may; None: the partition is not followed.
    """

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self.held: dict[TopicPartition, InitialFetchState | None] = {}

    def is_alive(self, broker_id: int) -> bool:
        """Whether a broker is alive, as far as is known here."""
        return self._peers.is_alive(broker_id)

    def submit_isr_change(self, partition: Partition, change: IsrChange) -> None:
        """Have a change of the ISR written."""
        self._peers.submit_isr_change(partition, change)

    def add_fetchers(self, partitions: Mapping[TopicPartition, InitialFetchState]) -> None:
        """Follow partitions, once they may be."""
        free = {}
        for topic_partition, begin in partitions.items():
            if topic_partition in self.held:
                self.held[topic_partition] = begin
            else:
                free[topic_partition] = begin
        if free:
            self._peers.add_fetchers(free)

    def remove_fetchers(self, partitions: Collection[TopicPartition]) -> None:
        """Follow partitions no more."""
        for topic_partition in partitions:
            if topic_partition in self.held:
                self.held[topic_partition] = None
        self._peers.remove_fetchers(partitions)

    def hold(self, topic_partition: TopicPartition, begin: InitialFetchState) -> None:
        """Stop following a partition.

        Args:
            begin: how fetching begins once it may.
        """
        self._peers.remove_fetchers((topic_partition,))
        self.held[topic_partition] = begin

    def release(self, topic_partition: TopicPartition) -> None:
        """Let a partition be followed again."""
        begin = self.held.pop(topic_partition, None)
        if begin is not None:
            self._peers.add_fetchers({topic_partition: begin})

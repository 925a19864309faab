"""What a partition asks of the broker that hosts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ...common.partition_state import LeaderAndIsr
from ...common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from .partition import Partition


class PartitionHost(Protocol):
    """Whoever hosts partitions (Kafka hands each of them a dozen collaborators)."""

    @property
    def lag_ms_max(self) -> int:
        """`replica.lag.time.max.ms`: after so long without being caught up one is out of sync."""

    def monotonic_ms(self) -> int:
        """The time."""

    def may_join_isr(self, broker_id: int) -> bool:
        """Whether a replica's broker is alive, as far as is known here."""

    def isr_change_proposed(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Have a change written; `Partition.isr_changed` or `isr_change_failed` gets the end."""

    def progressed(self, topic_partition: TopicPartition) -> None:
        """What waits for the partition may complete now."""


class NoHost:
    """Of a partition that stands alone: it has no followers, and nobody waits for it."""

    lag_ms_max = 30_000

    def monotonic_ms(self) -> int:
        """No time passes."""
        return 0

    def may_join_isr(self, broker_id: int) -> bool:
        """There is nobody else."""
        return False

    def isr_change_proposed(self, partition: Partition, change: LeaderAndIsr) -> None:
        """Nobody can ever ask for one, since the ISR is the leader alone."""
        raise AssertionError("a partition without a host has no followers")

    def progressed(self, topic_partition: TopicPartition) -> None:
        """Nothing waits."""

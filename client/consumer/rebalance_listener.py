"""What a consumer calls when partitions come and go."""

from __future__ import annotations

from collections.abc import Set

from .offsets import TopicPartition


class RebalanceListener:
    """Override what is needed; all of it runs while the consumer is polled, in the caller's task.

    What is raised comes out of the poll, and the same is called again with the next one.
    """

    async def on_assigned(self, partitions: Set[TopicPartition]) -> None:
        """These are read from now on; where from may be said by `Consumer.seek`."""

    async def on_revoked(self, partitions: Set[TopicPartition]) -> None:
        """These go to other members when this returns; offsets can still be committed."""

    async def on_lost(self, partitions: Set[TopicPartition]) -> None:
        """These may be other members' already, so nothing can be committed."""

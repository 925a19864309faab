"""Which transactional ids are kept here: one shard for each partition of
`__transaction_state` led here.

Ids of loaded shards stand in one table as well: an id is in that table if and only if it is this
broker's to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..shard_table import LedShard, ShardTable
from .context import TransactionContext
from .loading import Loader
from .state.transaction import Transaction, TransactionalId


class Shard(LedShard[Loader]):
    """The transactional ids of one partition that this broker leads.

    Attributes:
        ids: by transactional id; empty until everything is loaded.
    """

    __slots__ = ("ids",)

    def __init__(self, partition: int, leader_epoch: int, loader: Loader) -> None:
        super().__init__(partition, leader_epoch, loader)
        self.ids: dict[str, TransactionalId] = {}


class Shards(ShardTable[Shard]):
    """All shards of this broker.

    Args:
        context: settings, time and the log.
        topic_partitions: how many partitions `__transaction_state` has, or will have.

    Attributes:
        ids: those of all loaded shards, by transactional id.
        on_loaded: called with the ids of a shard when all are known.
    """

    def __init__(self, context: TransactionContext, topic_partitions: Callable[[], int]) -> None:
        super().__init__(context, topic_partitions, "transactions")
        self.ids: dict[str, TransactionalId] = {}
        self.on_loaded: Callable[[Iterable[TransactionalId]], None] = lambda ids: None
        self._context = context

    # -- finding an id ----------------------------------------------------------------------

    def find(self, name: str) -> TransactionalId | None:
        """The transactional id, or None if it would be kept here and is not known.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        known = self.ids.get(name)
        if known is None:
            self._loaded_shard(name)
        return known

    def add(self, name: str, transaction: Transaction) -> TransactionalId:
        """Take up a transactional id that was not known.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        shard = self._loaded_shard(name)
        known = TransactionalId(name, shard.partition, transaction)
        shard.ids[name] = self.ids[name] = known
        return known

    def forget(self, known: TransactionalId) -> None:
        """Drop an id whose tombstone is in the log."""
        if self.is_current(known):
            del self.ids[known.name]
            self._shards[known.partition].ids.pop(known.name, None)

    def is_current(self, known: TransactionalId) -> bool:
        """Whether this is still the one to change: its shard was not given up meanwhile."""
        return self.ids.get(known.name) is known

    def leader_epoch(self, known: TransactionalId) -> int:
        """Since which epoch this broker leads the partition of a current id."""
        return self._shards[known.partition].leader_epoch

    # -- loading and unloading ----------------------------------------------------------------

    def _make_shard(self, partition: int, leader_epoch: int) -> Shard:
        self._context.markers.drop(partition)
        return Shard(partition, leader_epoch, Loader(self._context, partition))

    def _take_up(self, shard: Shard, loader: Loader) -> None:
        shard.ids = loader.ids
        self.ids.update(loader.ids)
        self.on_loaded(list(loader.ids.values()))

    def unload(self, partition: int) -> None:
        """Another broker leads the partition now: forget its ids, and what was to be sent.

        Who waits for an append is told NOT_COORDINATOR when that comes to its end.
        """
        shard = self._shards.pop(partition, None)
        if shard is None:
            return
        for name in shard.ids:
            del self.ids[name]
        self._context.markers.drop(partition)

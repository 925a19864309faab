"""Which transactional ids are kept here: one shard for each partition of
`__transaction_state` led here.

A shard is loading, then loaded, until another broker leads its partition. Ids of loaded
shards stand in one table as well: an id is in that table if and only if it is this broker's
to change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from ....protocol.errors import ErrorCode, KafkaError
from ..partitioning import partition_for
from .context import TransactionContext
from .loading import Loader
from .transaction import Transaction, TransactionalId

logger = logging.getLogger(__name__)


class Shard:
    """The transactional ids of one partition that this broker leads.

    Attributes:
        leader_epoch: since which this broker leads it; markers carry it.
        loader: replays the log; None once everything is loaded.
        ids: by transactional id; empty until everything is loaded.
    """

    __slots__ = ("ids", "leader_epoch", "loader", "partition")

    def __init__(self, partition: int, leader_epoch: int, loader: Loader) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.loader: Loader | None = loader
        self.ids: dict[str, TransactionalId] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether its ids may be asked for."""
        return self.loader is None


class Shards:
    """All shards of this broker.

    Args:
        context: settings, time and the log.
        topic_partitions: how many partitions `__transaction_state` has, or will have.

    Attributes:
        ids: those of all loaded shards, by transactional id.
        on_loaded: called with the ids of a shard when all are known.
    """

    def __init__(self, context: TransactionContext, topic_partitions: Callable[[], int]) -> None:
        self.ids: dict[str, TransactionalId] = {}
        self.on_loaded: Callable[[Iterable[TransactionalId]], None] = lambda ids: None
        self._shards: dict[int, Shard] = {}
        self._context = context
        self._topic_partitions = topic_partitions

    # -- finding an id ----------------------------------------------------------------------

    def partition_for(self, name: str) -> int:
        """The partition of `__transaction_state` that keeps a transactional id."""
        return partition_for(name, self._topic_partitions())

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

    @property
    def is_loading(self) -> bool:
        """Whether there may be ids here that are not known yet."""
        return any(not shard.is_loaded for shard in self._shards.values())

    def partitions(self) -> list[int]:
        """The partitions that are led here."""
        return sorted(self._shards)

    def _loaded_shard(self, name: str) -> Shard:
        shard = self._shards.get(self.partition_for(name))
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not shard.is_loaded:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    # -- loading and unloading ----------------------------------------------------------------

    def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads a partition now: learn its ids, a first slice at once."""
        shard = self._shards.get(partition)
        if shard is not None:
            shard.leader_epoch = max(shard.leader_epoch, leader_epoch)
            return
        self._context.markers.drop(partition)
        try:
            shard = Shard(partition, leader_epoch, Loader(self._context, partition))
        except KafkaError as failure:
            logger.error("cannot load the transactions of partition %d: %s", partition, failure)
            return
        self._shards[partition] = shard
        self._context.run_flushed(partial(self._load_slice, shard))

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

    def _load_slice(self, shard: Shard) -> None:
        loader = shard.loader
        if loader is None or self._shards.get(shard.partition) is not shard:
            return
        try:
            done = loader.load_slice()
        except KafkaError as failure:
            logger.error(
                "cannot load the transactions of partition %d: %s", shard.partition, failure
            )
            del self._shards[shard.partition]
            return
        if not done:
            self._context.schedule(0, partial(self._load_slice, shard))
            return
        shard.loader = None
        shard.ids = loader.ids
        self.ids.update(loader.ids)
        self.on_loaded(list(loader.ids.values()))

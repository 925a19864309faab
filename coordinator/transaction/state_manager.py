"""TransactionStateManager: the transactional ids kept here, and their changes in the log.

One shard for each partition of `__transaction_state` led here. Ids of loaded shards stand in one
table as well: an id is in that table if and only if it is this broker's to change. A change is
handed to the log and counts once it is on enough replicas; while it is on its way the
transactional id is pending, and nothing else may begin on it. Source: Kafka's
TransactionStateManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...common.errors import ErrorCode
from ...protocol.errors import ProtocolError
from ...runtime.steps import Steps, count_items
from ..append_errors import group_error
from ..log import CoordinatorRecord, LoggedRecord
from ..shards import Shard, ShardTable
from .records import read_key, read_value, tombstone, transaction_record
from .runtime import TransactionRuntime
from .settings import TOMBSTONE_BATCH_BYTES
from .states import AT_REST, TRANSITIONS, TransactionEvent, TransactionState
from .transaction import Transaction, TransactionMetadata

logger = logging.getLogger(__name__)
IDS_PER_BATCH = 100
"""So many ids are removed at a time."""

AppendedCallback = Callable[[ErrorCode], None]
"""Called once: NONE when the change counts, else why it does not."""


class TransactionShard(Shard):
    """The transactional ids of one partition that this broker leads.

    Attributes:
        ids: by transactional id.
    """

    __slots__ = ("ids",)

    def __init__(self, runtime: TransactionRuntime, partition: int, leader_epoch: int) -> None:
        super().__init__(runtime.log, partition, leader_epoch, runtime.settings.load_slice_bytes)
        self.ids: dict[str, TransactionMetadata] = {}

    def replay(self, key: bytes, record: LoggedRecord, producer_id: int) -> None:
        """Apply one record; see `Shard.replay`."""
        name = read_key(key)
        if name is None:
            raise ProtocolError("its key is of a version that is not known")
        if record.value is None:
            self.ids.pop(name, None)
        else:
            self.ids[name] = TransactionMetadata(name, self.partition, read_value(record.value))

    def replay_end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """No transaction writes to `__transaction_state`."""


class TransactionStateManager(ShardTable[TransactionShard]):
    """All transactional ids of this broker.

    Args:
        runtime: settings, time and the log.
        topic_partitions: how many partitions `__transaction_state` has, or will have.
        on_loaded: called with each id of a shard that was loaded.

    Attributes:
        ids: those of all loaded shards, by transactional id.
    """

    def __init__(
        self,
        runtime: TransactionRuntime,
        topic_partitions: Callable[[], int],
        on_loaded: Callable[[TransactionMetadata], None],
    ) -> None:
        super().__init__(runtime, topic_partitions, "transactions")
        self.ids: dict[str, TransactionMetadata] = {}
        self._on_loaded = on_loaded
        self._runtime: TransactionRuntime = runtime

    # -- finding an id ----------------------------------------------------------------------

    def find(self, name: str) -> TransactionMetadata | None:
        """The transactional id, or None if it would be kept here and is not known.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        known = self.ids.get(name)
        if known is None:
            self._loaded_shard(name)
        return known

    def add(self, name: str, transaction: Transaction) -> TransactionMetadata:
        """Take up a transactional id that was not known.

        Raises:
            KafkaError: NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        shard = self._loaded_shard(name)
        known = TransactionMetadata(name, shard.partition, transaction)
        shard.ids[name] = self.ids[name] = known
        return known

    def is_current(self, known: TransactionMetadata) -> bool:
        """Whether this is still the one to change: its shard was not given up meanwhile."""
        return self.ids.get(known.name) is known

    def leader_epoch(self, known: TransactionMetadata) -> int:
        """Since which epoch this broker leads the partition of a current id."""
        return self._shards[known.partition].leader_epoch

    # -- changing an id ---------------------------------------------------------------------

    def append(
        self,
        known: TransactionMetadata,
        after: Transaction,
        on_complete: AppendedCallback,
        *,
        stays_pending: bool = False,
    ) -> None:
        """Append what a transactional id is to be, and make it so once that is safe.

        Args:
            known: nothing else is pending on it.
            after: what it is to be.
            on_complete: gets NOT_COORDINATOR if another broker has taken over meanwhile,
                COORDINATOR_NOT_AVAILABLE if it may be tried again.
            stays_pending: whether a failure leaves it pending, since it is tried again.

        Raises:
            KafkaError: the id is too long to be kept; nothing has changed.
        """
        record = transaction_record(known.name, after, self._runtime.transaction_version())
        known.pending = after.state

        def appended(error: ErrorCode, _: int) -> None:
            on_complete(self._appended(known, after, error, stays_pending=stays_pending))

        self._runtime.append(known.partition, [record], appended)

    def _appended(
        self,
        known: TransactionMetadata,
        after: Transaction,
        error: ErrorCode,
        *,
        stays_pending: bool,
    ) -> ErrorCode:
        if not self.is_current(known):
            return ErrorCode.NOT_COORDINATOR
        if error:
            logger.info(
                "could not append the transition of %r from %s to %s: %s",
                known.name,
                known.transaction.state.shown,
                after.state.shown,
                error.name,
            )
            if not stays_pending:
                known.pending = None
            return group_error(error)
        if after.state is TransactionState.ONGOING is not known.transaction.state:
            known.open_since_ms = self._runtime.clock.monotonic_ms()
        known.transaction = after
        known.pending = None
        return ErrorCode.NONE

    def remove_expired(self) -> Steps[None]:
        """Remove the transactional ids that were unused for too long, in batches.

        By wall time, as in Kafka: the log says when an id was used last, and days pass over it.
        """
        unused_since_ms = self._runtime.clock.now_ms() - self._runtime.settings.id_expiration_ms
        batches: dict[int, list[TransactionMetadata]] = {}
        sizes: dict[int, int] = {}
        for known in list(self.ids.values()):
            yield
            if not _is_expired(known, unused_since_ms):
                continue
            partition = known.partition
            batch = batches.setdefault(partition, [])
            batch.append(known)
            sizes[partition] = sizes.get(partition, 0) + len(known.name) * 4
            if sizes[partition] > TOMBSTONE_BATCH_BYTES or len(batch) == IDS_PER_BATCH:
                yield from self._remove(partition, batches.pop(partition), unused_since_ms)
                sizes[partition] = 0
        for partition, batch in batches.items():
            yield from self._remove(partition, batch, unused_since_ms)

    def _remove(
        self, partition: int, found: list[TransactionMetadata], unused_since_ms: int
    ) -> Steps[None]:
        """Remove those of a batch that were not used since they were found."""
        batch = [
            known
            for known in found
            if self.is_current(known) and _is_expired(known, unused_since_ms)
        ]
        if not batch:
            return
        records: list[CoordinatorRecord] = []
        for known in batch:
            known.pending = TRANSITIONS.next_state(
                known.transaction.state, TransactionEvent.EXPIRED
            )
            records.append(tombstone(known.name))

        def removed(error: ErrorCode, _: int) -> None:
            for known in batch:
                if error:
                    known.pending = None
                else:
                    self._forget(known)
            if error:
                logger.warning(
                    "could not remove %d expired transactional ids: %s", len(batch), error.name
                )

        self._runtime.append(partition, records, removed)
        self._runtime.log.flush()  # its end is as long as its beginning
        yield from count_items(2 * len(batch))

    def _forget(self, known: TransactionMetadata) -> None:
        if self.is_current(known):
            del self.ids[known.name]
            self._shards[known.partition].ids.pop(known.name, None)

    # -- loading and unloading ----------------------------------------------------------------

    def _make_shard(self, partition: int, leader_epoch: int) -> TransactionShard:
        self._runtime.markers.drop(partition)
        return TransactionShard(self._runtime, partition, leader_epoch)

    def _take_up(self, shard: TransactionShard) -> Steps[None]:
        for known in list(shard.ids.values()):
            yield
            self.ids[known.name] = known
            self._on_loaded(known)

    def unload(self, partition: int) -> None:
        """Another broker leads the partition now: forget its ids and unsent markers.

        Who waits for an append is answered NOT_COORDINATOR when that comes to its end.
        """
        shard = self._shards.pop(partition, None)
        if shard is None:
            return
        for name in shard.ids:
            self.ids.pop(name, None)
        self._runtime.markers.drop(partition)


def _is_expired(known: TransactionMetadata, unused_since_ms: int) -> bool:
    now = known.transaction
    return now.state in AT_REST and known.pending is None and now.last_update_ms <= unused_since_ms

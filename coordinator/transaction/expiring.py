"""What time ends: transactions that are open for too long, and ids that nobody uses.

Source: Kafka's TransactionCoordinator.abortTimedOutTransactions and
TransactionStateManager.removeExpiredTransactionalIds.
"""

from __future__ import annotations

import logging

from ...common.errors import ErrorCode, KafkaError
from ..log import CoordinatorRecord
from .context import TransactionContext
from .ending import Ending
from .settings import NO_TIME_LIMIT_MS, TOMBSTONE_BATCH_BYTES
from .shards import Shards
from .state.records import tombstone
from .state.transaction import TransactionalId
from .states import AT_REST, TRANSITIONS, TransactionEvent, TransactionState

logger = logging.getLogger(__name__)


class Expiring:
    """Looks for what is over its time.

    Args:
        context: settings, time and the log.
        shards: all transactional ids.
        ending: aborts in the producer's place.
    """

    def __init__(self, context: TransactionContext, shards: Shards, ending: Ending) -> None:
        self._context = context
        self._shards = shards
        self._ending = ending

    def abort_timed_out(self) -> None:
        """Abort each transaction whose time limit is over."""
        now_ms = self._context.clock.now_ms()
        for known in list(self._shards.ids.values()):
            if _is_timed_out(known, now_ms):
                self._abort(known)

    def abort(self, known: TransactionalId) -> bool:
        """Abort the transaction of an id whatever its time limit; returns whether one is open."""
        is_open = known.transaction.state is TransactionState.ONGOING and known.pending is None
        if is_open:
            self._abort(known)
        return is_open

    def _abort(self, known: TransactionalId) -> None:
        def aborted(error: ErrorCode, *_: int) -> None:
            if error:
                logger.warning(
                    "the transaction of %r, which took too long, is not aborted yet: %s",
                    known.name,
                    error.name,
                )
            else:
                logger.info("the transaction of %r took too long and is aborted", known.name)

        try:
            self._ending.fence(known, aborted)
        except KafkaError as refusal:
            aborted(refusal.code)

    def remove_expired(self) -> None:
        """Remove the transactional ids that nobody has used for long, in batches."""
        unused_since_ms = self._context.clock.now_ms() - self._context.settings.id_expiration_ms
        batches: dict[int, list[TransactionalId]] = {}
        sizes: dict[int, int] = {}
        for known in list(self._shards.ids.values()):
            if not _is_expired(known, unused_since_ms):
                continue
            partition = known.partition
            size = len(known.name) * 4
            if sizes.get(partition, 0) + size > TOMBSTONE_BATCH_BYTES and partition in batches:
                self._remove(partition, batches.pop(partition))
                sizes[partition] = 0
            batches.setdefault(partition, []).append(known)
            sizes[partition] = sizes.get(partition, 0) + size
        for partition, batch in batches.items():
            self._remove(partition, batch)

    def _remove(self, partition: int, batch: list[TransactionalId]) -> None:
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
                    self._shards.forget(known)
            if error:
                logger.warning(
                    "%d unused transactional ids are not removed yet: %s", len(batch), error.name
                )

        self._context.log.append(partition, records, removed)


def _is_timed_out(known: TransactionalId, now_ms: int) -> bool:
    now = known.transaction
    return (
        now.state is TransactionState.ONGOING
        and known.pending is None
        and now.timeout_ms != NO_TIME_LIMIT_MS
        and now.start_ms + now.timeout_ms < now_ms
    )


def _is_expired(known: TransactionalId, unused_since_ms: int) -> bool:
    now = known.transaction
    return now.state in AT_REST and known.pending is None and now.last_update_ms <= unused_since_ms

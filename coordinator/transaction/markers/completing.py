"""Completing: from the decision to the end, through the markers in every partition.

The decision is in the log before this begins, so whoever leads the partition next begins
here again: markers may be written twice, never not at all. Source: Kafka's
TransactionMarkerChannelManager and the end of TransactionCoordinator.endTransaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial

from ....common.errors import ErrorCode
from ..context import TransactionContext
from ..keeping import Keeping
from ..settings import APPEND_RETRY_BACKOFF_MS
from ..shards import Shards
from ..state.steps import completed
from ..state.transaction import Transaction, TransactionalId
from ..states import PREPARED, TransactionState
from .marker_sender import MarkersToWrite

logger = logging.getLogger(__name__)


class Completing:
    """Has markers written, and then keeps that they are.

    Args:
        context: the clock and the marker sender.
        shards: tell the epoch that markers carry, and whether an id is still this broker's.
        keeping: appends the last record.
    """

    def __init__(self, context: TransactionContext, shards: Shards, keeping: Keeping) -> None:
        self._context = context
        self._shards = shards
        self._keeping = keeping

    def decide(self, known: TransactionalId) -> Transaction:
        """What a prepared id will be; from now on that is pending, and `complete` must follow."""
        after = completed(known.transaction, self._context.clock.now_ms())
        known.pending = after.state
        known.has_failed_fence = False
        return after

    def complete(self, known: TransactionalId, after: Transaction) -> None:
        """Have the markers of a decided transaction written."""
        before = known.transaction
        if not before.partitions:
            self._store_end(known, after)
            return
        self._context.markers.send(
            MarkersToWrite(
                known.name,
                known.partition,
                self._shards.leader_epoch(known),
                before.producer_id,
                before.producer_epoch,
                before.state is TransactionState.PREPARE_COMMIT,
                before.partitions,
                before.client_version,
            ),
            partial(self._markers_written, known, after),
        )

    def resume(self, loaded: Iterable[TransactionalId]) -> None:
        """Go on where another coordinator, or this broker before a crash, has left off."""
        for known in loaded:
            if known.transaction.state in PREPARED:
                logger.info(
                    "the transactional id %r is %s: its markers are written now",
                    known.name,
                    known.transaction.state.shown,
                )
                self.complete(known, self.decide(known))

    def _markers_written(
        self, known: TransactionalId, after: Transaction, error: ErrorCode
    ) -> None:
        if not self._shards.is_current(known):
            return
        if error:
            # A newer coordinator wrote them, or will: this one learns soon that it is none.
            logger.warning(
                "the markers of the transactional id %r were refused: %s", known.name, error.name
            )
            return
        self._store_end(known, after)

    def _store_end(self, known: TransactionalId, after: Transaction) -> None:
        if not self._shards.is_current(known):
            return

        def stored(error: ErrorCode) -> None:
            # Whatever the reason: if this is no coordinator any more, it will soon be told.
            if error:
                self._context.schedule(
                    APPEND_RETRY_BACKOFF_MS, partial(self._store_end, known, after)
                )

        self._keeping.keep(known, after, stored, stays_pending=True)

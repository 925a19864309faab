"""Keeping: a change is handed to the log, and counts once it is on enough replicas.

While it is on its way the transactional id is pending, and nothing else may begin on it.
Source: Kafka's TransactionStateManager.appendTransactionToLog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...common.errors import ErrorCode
from ..append_errors import group_error
from .context import TransactionContext
from .shards import Shards
from .state.records import transaction_record
from .state.transaction import Transaction, TransactionalId

logger = logging.getLogger(__name__)

Kept = Callable[[ErrorCode], None]
"""Called once: NONE when the change counts, else why it does not."""


class Keeping:
    """Appends to the log.

    Args:
        context: the log, and what the format depends on.
        shards: tell whether an id is still this broker's.
    """

    def __init__(self, context: TransactionContext, shards: Shards) -> None:
        self._context = context
        self._shards = shards

    def keep(
        self,
        known: TransactionalId,
        after: Transaction,
        on_kept: Kept,
        *,
        stays_pending: bool = False,
    ) -> None:
        """Append what a transactional id is to be, and make it so once that is safe.

        Args:
            known: nothing else is pending on it.
            after: what it is to be.
            on_kept: NOT_COORDINATOR if another broker has taken over meanwhile;
                COORDINATOR_NOT_AVAILABLE if it may be tried again.
            stays_pending: whether a failure leaves it pending, since it is tried again.

        Raises:
            KafkaError: the id is too long to be kept; nothing has changed.
        """
        record = transaction_record(known.name, after, self._context.transaction_version())
        known.pending = after.state

        def appended(error: ErrorCode, _: int) -> None:
            on_kept(self._settle(known, after, error, stays_pending=stays_pending))

        self._context.log.append(known.partition, [record], appended)

    def _settle(
        self, known: TransactionalId, after: Transaction, error: ErrorCode, *, stays_pending: bool
    ) -> ErrorCode:
        if not self._shards.is_current(known):
            return ErrorCode.NOT_COORDINATOR
        if error:
            logger.info(
                "the transactional id %r stays %s, as its change to %s was not stored: %s",
                known.name,
                known.transaction.state.shown,
                after.state.shown,
                error.name,
            )
            if not stays_pending:
                known.pending = None
            return group_error(error)
        known.transaction = after
        known.pending = None
        return ErrorCode.NONE

"""EndTxn, and the abort in a producer's place: the decision about a transaction.

A producer of the first generation keeps its epoch from one transaction to the next. One of
the second (EndTxn 5 and later) is given the next epoch with each end, and another producer
id when the epochs are used up, so that nothing it wrote late can join its next transaction
(KIP-890). Source: Kafka 4.3's TransactionCoordinator.endTransaction and
endTransactionWithTV1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...metadata.features import SECOND_GENERATION
from .context import TransactionContext
from .keeping import Keeping
from .markers.completing import Completing
from .shards import Shards
from .state.steps import fence_epoch, fenced, prepared
from .state.transaction import LAST_USABLE_EPOCH, Transaction, TransactionalId
from .states import (
    FIRST_GENERATION,
    SECOND_GENERATION_AGAIN,
    SECOND_GENERATION_NEW,
    EndCell,
)

logger = logging.getLogger(__name__)

FIRST = 0
"""How records name the first generation of the protocol."""

EndCallback = Callable[[ErrorCode, int, int], None]
"""Called once with the outcome, and the producer id and epoch to go on with (-1 after errors)."""


class Ending:
    """Ends transactions.

    Args:
        context: the clock and producer ids.
        shards: where transactional ids are found.
        keeping: appends decisions.
        completing: does what was decided.
    """

    def __init__(
        self, context: TransactionContext, shards: Shards, keeping: Keeping, completing: Completing
    ) -> None:
        self._context = context
        self._shards = shards
        self._keeping = keeping
        self._completing = completing

    def end(
        self,
        known: TransactionalId,
        producer_id: int,
        producer_epoch: int,
        respond: EndCallback,
        *,
        committed: bool,
        client_version: int,
    ) -> None:
        """Commit or abort, as a client asks.

        Args:
            client_version: of the protocol that the client speaks, 0 or 2.

        Raises:
            KafkaError: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING,
                PRODUCER_FENCED, INVALID_TXN_STATE, or COORDINATOR_LOAD_IN_PROGRESS while
                no producer id is at hand.
        """
        if client_version >= SECOND_GENERATION:
            cell = _cell_of_second_generation(known, producer_id, producer_epoch)
        else:
            cell = _cell_of_first_generation(known, producer_id, producer_epoch)
        verdict = cell.commit if committed else cell.abort
        before = known.transaction
        if isinstance(verdict, ErrorCode):
            if verdict:
                raise KafkaError(verdict)
            respond(ErrorCode.NONE, before.producer_id, before.producer_epoch)
            return
        next_producer_id = self._next_producer_id(before, client_version)
        after = prepared(
            before, verdict, client_version, self._context.clock.now_ms(), next_producer_id
        )
        self._decide(known, after, respond)

    def fence(self, known: TransactionalId, respond: EndCallback) -> None:
        """Abort an open transaction in its producer's place, and fence that off.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS while no producer id is at hand.
        """
        is_second = self._context.transaction_version() >= SECOND_GENERATION
        version = SECOND_GENERATION if is_second else FIRST
        before = known.transaction
        next_producer_id = self._next_producer_id(before, version)
        if not is_second:
            # The producer is fenced at once, whatever becomes of the append.
            epoch = fence_epoch(before, has_failed_before=known.has_failed_fence)
            before = before._replace(producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
            known.transaction = before
        after = fenced(before, version, self._context.clock.now_ms(), next_producer_id)

        def decided(error: ErrorCode, producer_id: int, producer_epoch: int) -> None:
            if error:
                known.has_failed_fence = True
            respond(error, producer_id, producer_epoch)

        self._decide(known, after, decided)

    def _next_producer_id(self, before: Transaction, client_version: int) -> int:
        if client_version < SECOND_GENERATION or not before.is_epoch_exhausted:
            return NO_PRODUCER_ID
        producer_id = self._context.take_producer_id()
        if producer_id is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return producer_id

    def _decide(self, known: TransactionalId, after: Transaction, respond: EndCallback) -> None:
        """Store the decision; the producer may go on from then, before any marker is written."""

        def decided(error: ErrorCode) -> None:
            if error:
                respond(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
                return
            end = self._completing.decide(known)
            respond(ErrorCode.NONE, end.producer_id, end.producer_epoch)
            self._completing.complete(known, end)

        self._keeping.keep(known, after, decided)


def _cell_of_first_generation(
    known: TransactionalId, producer_id: int, producer_epoch: int
) -> EndCell:
    now = known.transaction
    if now.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if now.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if known.pending is not None:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return FIRST_GENERATION[now.state]


def _cell_of_second_generation(
    known: TransactionalId, producer_id: int, producer_epoch: int
) -> EndCell:
    now = known.transaction
    if known.pending is not None:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_again = now.producer_epoch == producer_epoch + 1
    is_again_after_rotation = (
        now.previous_producer_id == producer_id
        and producer_epoch == LAST_USABLE_EPOCH
        and now.producer_epoch == 0
    )
    if now.producer_id != producer_id and not is_again_after_rotation:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    cell = None
    if is_again or is_again_after_rotation:
        cell = SECOND_GENERATION_AGAIN.get(now.state)
    elif now.producer_epoch == producer_epoch:
        cell = SECOND_GENERATION_NEW.get(now.state)
    if cell is None:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return cell

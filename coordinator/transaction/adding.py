"""AddPartitionsToTxn: partitions join a transaction, or are asked whether they are in it.

Source: Kafka's TransactionCoordinator.handleAddPartitionsToTransaction and
handleVerifyPartitionsInTransaction.
"""

from __future__ import annotations

from collections.abc import Callable

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from .context import TransactionContext
from .keeping import Keeping
from .state.steps import with_partitions
from .state.transaction import Transaction, TransactionalId
from .states import PREPARED, TransactionState

AddCallback = Callable[[ErrorCode], None]
"""Called once: NONE when the partitions are in the transaction."""


class Adding:
    """Adds partitions to transactions.

    Args:
        context: the clock.
        keeping: appends the grown transaction.
    """

    def __init__(self, context: TransactionContext, keeping: Keeping) -> None:
        self._context = context
        self._keeping = keeping

    def add(
        self,
        known: TransactionalId,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        respond: AddCallback,
        *,
        client_version: int,
    ) -> None:
        """Add partitions, and open the transaction if it is not.

        Args:
            client_version: of the protocol that the producer speaks, 0 or 2.

        Raises:
            KafkaError: CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING or
                PRODUCER_FENCED.
        """
        if known.pending is not None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        now = known.transaction
        _check_producer(now, producer_id, producer_epoch)
        if now.state is TransactionState.ONGOING and partitions <= now.partitions:
            respond(ErrorCode.NONE)
            return
        after = with_partitions(now, partitions, self._context.clock.now_ms(), client_version)
        self._keeping.keep(known, after, respond)


def verify(
    known: TransactionalId,
    producer_id: int,
    producer_epoch: int,
    partitions: frozenset[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """NONE for each partition that is in the transaction, TRANSACTION_ABORTABLE for others.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED or CONCURRENT_TRANSACTIONS.
    """
    now = known.transaction
    _check_producer(now, producer_id, producer_epoch)
    return {
        partition: ErrorCode.NONE
        if partition in now.partitions
        else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _check_producer(now: Transaction, producer_id: int, producer_epoch: int) -> None:
    if now.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if now.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if now.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)

"""InitProducerId with a transactional id: a producer starts, or goes on after an error.

It gets an epoch that no producer of this id has had, so that all earlier ones are fenced. A
transaction that an earlier one has left open is aborted first, and the client is told to ask
again. Source: Kafka's TransactionCoordinator.handleInitProducerId; KIP-360 for producers
that tell what they have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from .context import TransactionContext
from .ending import Ending
from .keeping import Keeping
from .shards import Shards
from .state.records import transaction_key
from .state.steps import initialized, rotated
from .state.transaction import LAST_USABLE_EPOCH, Transaction, TransactionalId
from .states import PREPARED, TransactionState

InitCallback = Callable[[ErrorCode, int, int], None]
"""Called once with the outcome, the producer id and its epoch (-1 after an error)."""


class ProducerIdAndEpoch(NamedTuple):
    """What a producer says that it has."""

    producer_id: int
    epoch: int


class Initializing:
    """Gives producers their epochs.

    Args:
        context: settings, the clock and producer ids.
        shards: where transactional ids are found.
        keeping: appends what a producer was given.
        ending: aborts what an earlier producer has left open.
    """

    def __init__(
        self, context: TransactionContext, shards: Shards, keeping: Keeping, ending: Ending
    ) -> None:
        self._context = context
        self._shards = shards
        self._keeping = keeping
        self._ending = ending

    def initialize(
        self,
        name: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        respond: InitCallback,
    ) -> None:
        """Give a producer its id and epoch.

        Args:
            name: its transactional id.
            timeout_ms: how long its transactions may be open.
            expected: what it has, if it goes on after an error.

        Raises:
            KafkaError: INVALID_REQUEST, INVALID_TRANSACTION_TIMEOUT,
                CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, NOT_COORDINATOR or
                COORDINATOR_LOAD_IN_PROGRESS.
        """
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._context.settings.max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        known = self._shards.find(name)
        if known is None:
            known = self._new_id(name, timeout_ms)
        self._check(known, expected)
        if known.transaction.state is TransactionState.ONGOING:
            self._fence(known, respond)
            return
        after = self._next(known.transaction, timeout_ms, expected)

        def kept(error: ErrorCode) -> None:
            if error:
                respond(error, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
            else:
                respond(ErrorCode.NONE, after.producer_id, after.producer_epoch)

        self._keeping.keep(known, after, kept)

    def _new_id(self, name: str, timeout_ms: int) -> TransactionalId:
        transaction_key(name)  # one that cannot be stored is refused before it is known
        now_ms = self._context.clock.now_ms()
        return self._shards.add(name, Transaction(self._take_producer_id(), timeout_ms, now_ms))

    def _check(self, known: TransactionalId, expected: ProducerIdAndEpoch | None) -> None:
        now = known.transaction
        if known.pending is not None:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if expected is not None and not _may_have(now, expected):
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if now.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)

    def _fence(self, known: TransactionalId, respond: InitCallback) -> None:
        def fenced(error: ErrorCode, *_: int) -> None:
            respond(error or ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

        self._ending.fence(known, fenced)

    def _next(
        self, now: Transaction, timeout_ms: int, expected: ProducerIdAndEpoch | None
    ) -> Transaction:
        now_ms = self._context.clock.now_ms()
        if now.is_epoch_exhausted and (expected is None or expected.epoch == now.producer_epoch):
            return rotated(
                now,
                self._take_producer_id(),
                timeout_ms,
                now_ms,
                may_ask_again=expected is not None,
            )
        return initialized(now, timeout_ms, None if expected is None else expected.epoch, now_ms)

    def _take_producer_id(self) -> int:
        producer_id = self._context.take_producer_id()
        if producer_id is None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return producer_id


def _may_have(now: Transaction, expected: ProducerIdAndEpoch) -> bool:
    """Whether the producer's id can be right; its epoch is looked at later.

    An id that was not in use before is right: the producer comes back after its transactional
    id was forgotten. The former id is right if its epochs are used up: the producer may not
    have heard of the new one.
    """
    return (
        now.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == now.producer_id
        or (
            expected.producer_id == now.previous_producer_id and expected.epoch >= LAST_USABLE_EPOCH
        )
    )

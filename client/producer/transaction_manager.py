"""What a producer is to its brokers: its identity, and where its transaction stands.

Kafka's `TransactionManager` without the requests: a state machine that `Sender` asks before it
sends, and that whoever speaks with coordinators reports to. An idempotent producer has an identity
and no states.

There are two generations of the protocol. In the first, a partition must be added to the
transaction by a request before it gets records (KIP-98), and the epoch grows only after an error
(KIP-360). In the second, the first Produce adds its partition, and every end of a transaction
brings a new epoch, so that no late request can be taken for one of the next transaction (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from ...common.errors import ErrorCode, KafkaError
from ...common.state_table import StateTable
from .errors import (
    AbortableTransactionError,
    FatalProducerError,
    ProducerFencedError,
    TransactionError,
)
from .producer_batch import NO_IDENTITY, ProducerIdentity

EPOCH_MAX = 0x7FFF
SECOND_GENERATION = 2
"""The level of the feature transaction.version from which the second generation is spoken."""


class TransactionState(Enum):
    """How far a transactional producer is."""

    UNINITIALIZED = "uninitialized"
    INITIALIZING = "initializing"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


_S = TransactionState
_FATAL = ("an answer", _S.FATAL_ERROR, "the producer was fenced, or may not go on")
STATES = StateTable[TransactionState](
    "a transactional producer",
    {
        _S.UNINITIALIZED: [
            ("init_transactions", _S.INITIALIZING, "InitProducerId is sent"),
            _FATAL,
        ],
        _S.INITIALIZING: [
            ("init_transactions", _S.INITIALIZING, "it is called again after it timed out"),
            ("an answer", _S.READY, "the coordinator gave an id and an epoch"),
            ("an answer", _S.UNINITIALIZED, "the coordinator refused this client"),
            _FATAL,
        ],
        _S.READY: [("begin_transaction", _S.IN_TRANSACTION, "nothing is sent for it"), _FATAL],
        _S.IN_TRANSACTION: [
            ("commit_transaction", _S.COMMITTING, "what is left is sent, then EndTxn"),
            ("abort_transaction", _S.ABORTING, "what is left is dropped, then EndTxn is sent"),
            ("an answer", _S.ABORTABLE_ERROR, "a batch or an offset could not be written"),
            _FATAL,
        ],
        _S.COMMITTING: [
            ("commit_transaction", _S.COMMITTING, "it is called again after it timed out"),
            ("an answer", _S.READY, "the transaction is committed"),
            ("an answer", _S.ABORTABLE_ERROR, "a batch failed, or the coordinator refuses"),
            _FATAL,
        ],
        _S.ABORTABLE_ERROR: [
            ("abort_transaction", _S.ABORTING, "what is left is dropped, then EndTxn is sent"),
            _FATAL,
        ],
        _S.ABORTING: [
            ("abort_transaction", _S.ABORTING, "it is called again after it timed out"),
            ("an answer", _S.READY, "the transaction is aborted"),
            _FATAL,
        ],
        _S.FATAL_ERROR: [],
    },
    label=lambda state: state.value,
    initial=_S.UNINITIALIZED,
)

_ABORTABLE_STATES = (_S.IN_TRANSACTION, _S.COMMITTING, _S.ABORTABLE_ERROR)

FENCED_ERRORS = frozenset({ErrorCode.PRODUCER_FENCED})
FATAL_ERRORS = frozenset(
    {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
"""After these of a Produce, a transactional producer cannot go on."""

COORDINATOR_FENCED_ERRORS = FENCED_ERRORS | {ErrorCode.INVALID_PRODUCER_EPOCH}
COORDINATOR_ABORTABLE_ERRORS = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""Of a coordinator's errors that do not pass, those after which the transaction can be aborted;
after any other the producer cannot go on."""


class TransactionManager:
    """The identity of one producer, and its transaction.

    Args:
        transactional_id: None for a producer that is only idempotent.

    Attributes:
        identity: producer id and epoch; `NO_IDENTITY` until a broker gave them.
        state: of a transactional producer.
        error: why it is in an error state.
        is_second_generation: which protocol the transaction that is open speaks.
        is_started: whether the coordinator may know of the transaction.
        must_bump_epoch: whether the sequences have gaps that only another epoch can close.
    """

    def __init__(self, transactional_id: str | None = None) -> None:
        self.transactional_id = transactional_id
        self.identity = NO_IDENTITY
        self.state = TransactionState.UNINITIALIZED
        self.error: Exception | None = None
        self.is_second_generation = False
        self.is_started = False
        self.must_bump_epoch = False
        self._partitions: set[tuple[str, int]] = set()
        self._to_add: dict[tuple[str, int], None] = {}

    @property
    def is_transactional(self) -> bool:
        """Whether it has a transactional id."""
        return self.transactional_id is not None

    @property
    def needs_identity(self) -> bool:
        """Whether an idempotent producer must be given an id before it can send."""
        return self.transactional_id is None and self.identity == NO_IDENTITY

    def bump_epoch(self) -> None:
        """Take the next epoch, as an idempotent producer may by itself; after the last one it
        needs another id (KIP-360)."""
        producer_id, epoch = self.identity
        if epoch >= EPOCH_MAX:
            self.identity = NO_IDENTITY
        else:
            self.identity = ProducerIdentity(producer_id, epoch + 1)

    @property
    def is_mapping_lost(self) -> bool:
        """Whether the coordinator has forgotten the producer id, so that there is nothing to
        end."""
        cause = None if self.error is None else self.error.__cause__
        return isinstance(cause, KafkaError) and cause.code == ErrorCode.INVALID_PRODUCER_ID_MAPPING

    # --- Sending -----------------------------------------------------------------------------

    def require_sending(self) -> None:
        """Make sure that records may be accepted.

        Raises:
            AbortableTransactionError: the transaction must be aborted.
            FatalProducerError: the producer cannot go on.
            RuntimeError: no transaction is open.
        """
        if self.transactional_id is None:
            return
        self.raise_error()
        if self.state is not TransactionState.IN_TRANSACTION:
            raise RuntimeError(
                f"a transactional producer sends within a transaction; it is {self.state.value}"
            )

    def raise_error(self) -> None:
        """Raise what put it into an error state, if it is in one.

        Raises:
            AbortableTransactionError: the transaction must be aborted.
            FatalProducerError: the producer cannot go on.
        """
        if self.error is not None:
            raise type(self.error)(*self.error.args) from self.error.__cause__

    def add_partition(self, topic: str, partition: int) -> None:
        """Records for a partition were accepted."""
        if self.transactional_id is None or (topic, partition) in self._partitions:
            return
        if self.is_second_generation:
            self._partitions.add((topic, partition))
            self.is_started = True
        else:
            self._to_add[topic, partition] = None

    def may_send_to(self, topic: str, partition: int) -> bool:
        """Whether a partition is part of the transaction, if there need be one."""
        return self.transactional_id is None or (topic, partition) in self._partitions

    @property
    def partitions_to_add(self) -> list[tuple[str, int]]:
        """What the coordinator must be told of before it may get records."""
        return list(self._to_add)

    def partitions_added(self, partitions: Iterable[tuple[str, int]]) -> None:
        """The coordinator has added partitions to the transaction."""
        for key in partitions:
            self._to_add.pop(key, None)
            self._partitions.add(key)
        self.is_started = True

    def batch_failed(self, failure: Exception, *, leaves_gap: bool) -> None:
        """A batch will not be sent again: a transaction that it is part of cannot be committed.

        Args:
            failure: of the batch.
            leaves_gap: whether it had a sequence number.
        """
        if self.transactional_id is None:
            return
        self.must_bump_epoch |= leaves_gap
        if self.error is not None:
            return
        code = failure.code if isinstance(failure, KafkaError) else None
        if code in FENCED_ERRORS:
            self.fail(_fenced(failure))
        elif code in FATAL_ERRORS:
            self.fail(FatalProducerError(f"the producer cannot go on: {failure}"), failure)
        elif self.state in (TransactionState.IN_TRANSACTION, TransactionState.COMMITTING):
            self.fail(
                AbortableTransactionError(f"the transaction must be aborted: {failure}"), failure
            )

    # --- The transaction's way ---------------------------------------------------------------

    def enter(self, state: TransactionState) -> None:
        """Go on to a state because the user called for it.

        Raises:
            RuntimeError: this cannot be called now.
            AbortableTransactionError: the transaction must be aborted.
            FatalProducerError: the producer cannot go on.
        """
        if self.transactional_id is None:
            raise RuntimeError("the producer has no transactional_id")
        if self.state is TransactionState.FATAL_ERROR or state is not TransactionState.ABORTING:
            self.raise_error()
        if (self.state, state) not in STATES.by_target:
            raise RuntimeError(f"a producer that is {self.state.value} cannot become {state.value}")
        self.state = state

    def begin(self, *, is_second_generation: bool) -> None:
        """Open a transaction.

        Raises:
            RuntimeError: there is one, or `init_transactions` was not called.
            FatalProducerError: the producer cannot go on.
        """
        self.enter(TransactionState.IN_TRANSACTION)
        self.is_second_generation = is_second_generation

    def initialized(self, identity: ProducerIdentity) -> None:
        """A broker has given id and epoch."""
        self.identity = identity
        self.must_bump_epoch = False
        if self.is_transactional and self.state is TransactionState.INITIALIZING:
            self.state = TransactionState.READY

    def refused(self) -> None:
        """The coordinator refuses this client; it may try again later."""
        STATES.require(self.state, TransactionState.UNINITIALIZED)
        self.state = TransactionState.UNINITIALIZED

    def ended(self, identity: ProducerIdentity | None) -> None:
        """The transaction is over.

        Args:
            identity: for the next one, if the coordinator gave another (KIP-890).
        """
        STATES.require(self.state, TransactionState.READY)
        self.state = TransactionState.READY
        self.error = None
        self.is_started = False
        self._partitions.clear()
        self._to_add.clear()
        if identity is not None:
            self.initialized(identity)

    def coordinator_refused(self, code: ErrorCode, what: str) -> TransactionError:
        """A coordinator's error that will not pass; what the caller is to raise.

        Args:
            code: the error.
            what: it is about, for the message.
        """
        refusal = KafkaError(code, what)
        if code in COORDINATOR_FENCED_ERRORS:
            return self.fail(_fenced(refusal), refusal)
        if code in COORDINATOR_ABORTABLE_ERRORS and self.state in _ABORTABLE_STATES:
            if code in (ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING):
                self.must_bump_epoch = True
            error = AbortableTransactionError(f"the transaction must be aborted: {refusal}")
            return self.fail(error, refusal)
        return self.fail(FatalProducerError(f"the producer cannot go on: {refusal}"), refusal)

    def fail(self, error: TransactionError, cause: Exception | None = None) -> TransactionError:
        """Go to the state of an error; returns it."""
        if self.state is TransactionState.FATAL_ERROR:
            return error
        is_abortable = isinstance(error, AbortableTransactionError)
        target = TransactionState.ABORTABLE_ERROR if is_abortable else TransactionState.FATAL_ERROR
        if self.state is not target:
            STATES.require(self.state, target)
            self.state = target
            self.error = error
            error.__cause__ = cause
        return error


def _fenced(refusal: Exception) -> ProducerFencedError:
    return ProducerFencedError(
        f"another producer with the same transactional id has taken over: {refusal}"
    )

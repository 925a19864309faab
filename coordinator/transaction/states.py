"""The states of a transactional id as a table, and what EndTxn does in each as others.

A change is *pending* from when its record is handed to the log until that is on enough
replicas; while one is pending nothing else may begin, and requests are answered
CONCURRENT_TRANSACTIONS. Drawn in `docs/transaction_states.md`. Source: Kafka's
TransactionState, TransactionMetadata and TransactionCoordinator.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NamedTuple

from ...common.errors import ErrorCode
from ...common.state_table import StateTable


class TransactionState(IntEnum):
    """Where a transactional id stands; the number is what `__transaction_state` keeps."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def shown(self) -> str:
        """The name that clients see."""
        return SHOWN_STATES[self]


SHOWN_STATES = {state: state.name.title().replace("_", "") for state in TransactionState}
BY_SHOWN = {name: state for state, name in SHOWN_STATES.items()}

PREPARED = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT))
"""The outcome is decided; markers are on their way, and after a crash they are sent again."""

AT_REST = frozenset(
    (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
)
"""No transaction is open: the producer may begin one, and an unused id may be forgotten."""


class TransactionEvent(Enum):
    """What moves a transactional id from one state to another."""

    INITIALIZED = "InitProducerId"
    PARTITIONS_ADDED = "partitions or offsets added"
    COMMIT_REQUESTED = "EndTxn, commit"
    ABORT_REQUESTED = "EndTxn, abort"
    EMPTY_ABORT_REQUESTED = "EndTxn, abort of nothing"
    FENCED = "timed out or taken over"
    MARKERS_WRITTEN = "markers written"
    EXPIRED = "expired"


_NEW_PRODUCER = "a producer starts, or goes on after an error: it gets the next epoch"
_BEGUN = "the first partition opens a transaction; its time limit runs from here"
_NOTHING_TO_ABORT = (
    "a producer of the second generation that is not sure what it has sent; "
    "it gets the next epoch all the same (KIP-890)"
)
_UNUSED = "unused for transactional.id.expiration.ms: a tombstone removes it"
_S = TransactionState
_E = TransactionEvent
TRANSITIONS = StateTable(
    "a transactional id",
    {
        _S.EMPTY: (
            (_E.INITIALIZED, _S.EMPTY, _NEW_PRODUCER),
            (_E.PARTITIONS_ADDED, _S.ONGOING, _BEGUN),
            (_E.EMPTY_ABORT_REQUESTED, _S.PREPARE_ABORT, _NOTHING_TO_ABORT),
            (_E.EXPIRED, _S.DEAD, _UNUSED),
        ),
        _S.ONGOING: (
            (_E.PARTITIONS_ADDED, _S.ONGOING, "more partitions take part"),
            (
                _E.COMMIT_REQUESTED,
                _S.PREPARE_COMMIT,
                "from here on it is committed, whoever crashes",
            ),
            (_E.ABORT_REQUESTED, _S.PREPARE_ABORT, "from here on it is aborted, whoever crashes"),
            (
                _E.FENCED,
                _S.PREPARE_EPOCH_FENCE,
                "the producer took too long, or another with its id begins: its epoch is used up",
            ),
        ),
        _S.PREPARE_EPOCH_FENCE: (
            (
                _E.ABORT_REQUESTED,
                _S.PREPARE_ABORT,
                "the coordinator aborts in the producer's place; only this record reaches the log",
            ),
        ),
        _S.PREPARE_COMMIT: (
            (
                _E.MARKERS_WRITTEN,
                _S.COMPLETE_COMMIT,
                "each partition shows the records to committed readers",
            ),
        ),
        _S.PREPARE_ABORT: (
            (
                _E.MARKERS_WRITTEN,
                _S.COMPLETE_ABORT,
                "each partition knows that the records do not count",
            ),
        ),
        _S.COMPLETE_COMMIT: (
            (_E.INITIALIZED, _S.EMPTY, _NEW_PRODUCER),
            (_E.PARTITIONS_ADDED, _S.ONGOING, _BEGUN),
            (_E.EMPTY_ABORT_REQUESTED, _S.PREPARE_ABORT, _NOTHING_TO_ABORT),
            (_E.EXPIRED, _S.DEAD, _UNUSED),
        ),
        _S.COMPLETE_ABORT: (
            (_E.INITIALIZED, _S.EMPTY, _NEW_PRODUCER),
            (_E.PARTITIONS_ADDED, _S.ONGOING, _BEGUN),
            (_E.EMPTY_ABORT_REQUESTED, _S.PREPARE_ABORT, _NOTHING_TO_ABORT),
            (_E.EXPIRED, _S.DEAD, _UNUSED),
        ),
    },
    label=lambda state: state.shown,
    initial=_S.EMPTY,
    final=_S.DEAD,
)
"""What moves a transactional id."""


class EndCell(NamedTuple):
    """What a commit and an abort do in one state: an event to take, or the answer given at once.

    NONE where the request came again and is done already, CONCURRENT_TRANSACTIONS where it is
    being done. In the second generation of the protocol the epoch tells a request that came
    again from the next one (KIP-890).
    """

    commit: TransactionEvent | ErrorCode
    abort: TransactionEvent | ErrorCode


_COMMITTING = EndCell(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE)
_ABORTING = EndCell(ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS)
_COMMITTED = EndCell(ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE)
_ABORTED = EndCell(ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE)
_OPEN = EndCell(TransactionEvent.COMMIT_REQUESTED, TransactionEvent.ABORT_REQUESTED)
_NOTHING = EndCell(ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE)
_NOTHING_BUT_AN_EPOCH = EndCell(ErrorCode.INVALID_TXN_STATE, TransactionEvent.EMPTY_ABORT_REQUESTED)

FIRST_GENERATION: dict[TransactionState, EndCell] = {
    TransactionState.EMPTY: _NOTHING,
    TransactionState.ONGOING: _OPEN,
    TransactionState.PREPARE_COMMIT: _COMMITTING,
    TransactionState.PREPARE_ABORT: _ABORTING,
    TransactionState.COMPLETE_COMMIT: _COMMITTED,
    TransactionState.COMPLETE_ABORT: _ABORTED,
}

SECOND_GENERATION_NEW: dict[TransactionState, EndCell] = {
    TransactionState.EMPTY: _NOTHING_BUT_AN_EPOCH,
    TransactionState.ONGOING: _OPEN,
    TransactionState.COMPLETE_COMMIT: _NOTHING_BUT_AN_EPOCH,
    TransactionState.COMPLETE_ABORT: _NOTHING_BUT_AN_EPOCH,
}
"""For a request with the epoch of now."""

SECOND_GENERATION_AGAIN: dict[TransactionState, EndCell] = {
    TransactionState.PREPARE_COMMIT: _COMMITTING,
    TransactionState.PREPARE_ABORT: _ABORTING,
    TransactionState.COMPLETE_COMMIT: _COMMITTED,
    TransactionState.COMPLETE_ABORT: _ABORTED,
}
"""For a request with the epoch before, which its end has used up."""

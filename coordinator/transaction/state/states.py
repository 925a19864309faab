"""The states of a transactional id, as a table.

Rule 1: a transactional id changes its state through `next_state` alone, and a cell that is
missing here raises. Rule 2: a change is *pending* from when its record is handed to the log
until that is on enough replicas; while one is pending nothing else may begin, and clients
are told CONCURRENT_TRANSACTIONS. `diagram.py` draws `docs/transaction_states.md` from these
tables. Source: Kafka's TransactionState and TransactionMetadata.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


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
        return SHOWN[self]


SHOWN = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
BY_SHOWN = {name: state for state, name in SHOWN.items()}

PREPARED = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT))
"""The outcome is decided; markers are on their way, and after a crash they are sent again."""

AT_REST = frozenset(
    (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
)
"""No transaction is open: the producer may begin one, and an unused id may be forgotten."""


class TransactionEvent(IntEnum):
    """What moves a transactional id from one state to another."""

    INITIALIZED = 0
    PARTITIONS_ADDED = 1
    COMMIT_ASKED = 2
    ABORT_ASKED = 3
    EMPTY_ABORT_ASKED = 4
    FENCED = 5
    MARKERS_WRITTEN = 6
    EXPIRED = 7

    @property
    def shown(self) -> str:
        """What the diagram says of it."""
        return EVENTS_SHOWN[self]


EVENTS_SHOWN = {
    TransactionEvent.INITIALIZED: "InitProducerId",
    TransactionEvent.PARTITIONS_ADDED: "partitions or offsets added",
    TransactionEvent.COMMIT_ASKED: "EndTxn, commit",
    TransactionEvent.ABORT_ASKED: "EndTxn, abort",
    TransactionEvent.EMPTY_ABORT_ASKED: "EndTxn, abort of nothing",
    TransactionEvent.FENCED: "timed out or taken over",
    TransactionEvent.MARKERS_WRITTEN: "markers written",
    TransactionEvent.EXPIRED: "expired",
}


class Transition(NamedTuple):
    """One cell: where the event leads, and why."""

    target: TransactionState
    reason: str


_NEW_PRODUCER = "a producer starts, or goes on after an error: it gets the next epoch"
_BEGUN = "the first partition opens a transaction; its time limit runs from here"
_NOTHING_TO_ABORT = (
    "a producer of the second generation that is not sure what it has sent; "
    "it gets the next epoch all the same (KIP-890)"
)
_UNUSED = "unused for transactional.id.expiration.ms: a tombstone removes it"

TRANSITIONS: dict[tuple[TransactionState, TransactionEvent], Transition] = {
    (TransactionState.EMPTY, TransactionEvent.INITIALIZED): Transition(
        TransactionState.EMPTY, _NEW_PRODUCER
    ),
    (TransactionState.EMPTY, TransactionEvent.PARTITIONS_ADDED): Transition(
        TransactionState.ONGOING, _BEGUN
    ),
    (TransactionState.EMPTY, TransactionEvent.EMPTY_ABORT_ASKED): Transition(
        TransactionState.PREPARE_ABORT, _NOTHING_TO_ABORT
    ),
    (TransactionState.EMPTY, TransactionEvent.EXPIRED): Transition(TransactionState.DEAD, _UNUSED),
    (TransactionState.ONGOING, TransactionEvent.PARTITIONS_ADDED): Transition(
        TransactionState.ONGOING, "more partitions take part"
    ),
    (TransactionState.ONGOING, TransactionEvent.COMMIT_ASKED): Transition(
        TransactionState.PREPARE_COMMIT, "from here on it is committed, whoever crashes"
    ),
    (TransactionState.ONGOING, TransactionEvent.ABORT_ASKED): Transition(
        TransactionState.PREPARE_ABORT, "from here on it is aborted, whoever crashes"
    ),
    (TransactionState.ONGOING, TransactionEvent.FENCED): Transition(
        TransactionState.PREPARE_EPOCH_FENCE,
        "the producer took too long, or another with its id begins: its epoch is used up",
    ),
    (TransactionState.PREPARE_EPOCH_FENCE, TransactionEvent.ABORT_ASKED): Transition(
        TransactionState.PREPARE_ABORT,
        "the coordinator aborts in the producer's place; only this record reaches the log",
    ),
    (TransactionState.PREPARE_COMMIT, TransactionEvent.MARKERS_WRITTEN): Transition(
        TransactionState.COMPLETE_COMMIT, "each partition shows the records to committed readers"
    ),
    (TransactionState.PREPARE_ABORT, TransactionEvent.MARKERS_WRITTEN): Transition(
        TransactionState.COMPLETE_ABORT, "each partition knows that the records do not count"
    ),
    (TransactionState.COMPLETE_COMMIT, TransactionEvent.INITIALIZED): Transition(
        TransactionState.EMPTY, _NEW_PRODUCER
    ),
    (TransactionState.COMPLETE_COMMIT, TransactionEvent.PARTITIONS_ADDED): Transition(
        TransactionState.ONGOING, _BEGUN
    ),
    (TransactionState.COMPLETE_COMMIT, TransactionEvent.EMPTY_ABORT_ASKED): Transition(
        TransactionState.PREPARE_ABORT, _NOTHING_TO_ABORT
    ),
    (TransactionState.COMPLETE_COMMIT, TransactionEvent.EXPIRED): Transition(
        TransactionState.DEAD, _UNUSED
    ),
    (TransactionState.COMPLETE_ABORT, TransactionEvent.INITIALIZED): Transition(
        TransactionState.EMPTY, _NEW_PRODUCER
    ),
    (TransactionState.COMPLETE_ABORT, TransactionEvent.PARTITIONS_ADDED): Transition(
        TransactionState.ONGOING, _BEGUN
    ),
    (TransactionState.COMPLETE_ABORT, TransactionEvent.EMPTY_ABORT_ASKED): Transition(
        TransactionState.PREPARE_ABORT, _NOTHING_TO_ABORT
    ),
    (TransactionState.COMPLETE_ABORT, TransactionEvent.EXPIRED): Transition(
        TransactionState.DEAD, _UNUSED
    ),
}


class IllegalTransitionError(Exception):
    """An event came in a state that has no cell for it: a fault of this broker."""


def next_state(state: TransactionState, event: TransactionEvent) -> TransactionState:
    """Where `event` leads a transactional id that is in `state`.

    Raises:
        IllegalTransitionError: the table has no such cell.
    """
    transition = TRANSITIONS.get((state, event))
    if transition is None:
        raise IllegalTransitionError(
            f"a transactional id that is {state.shown} cannot take '{event.shown}'"
        )
    return transition.target

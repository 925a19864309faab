"""What EndTxn does in each state, as tables: one for each generation of the protocol.

A cell is the event to take, or the answer that is given at once: NONE where the request
came again and is done already, CONCURRENT_TRANSACTIONS where it is being done. In the
second generation the epoch tells a request that came again from the next one (KIP-890).
`diagram.py` draws these tables too. Source: Kafka 4.3's TransactionCoordinator.
"""

from __future__ import annotations

from typing import NamedTuple

from ....common.errors import ErrorCode
from .states import TransactionEvent, TransactionState


class EndCell(NamedTuple):
    """What a commit and an abort do in one state."""

    commit: TransactionEvent | ErrorCode
    abort: TransactionEvent | ErrorCode


_COMMITTING = EndCell(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE)
_ABORTING = EndCell(ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS)
_COMMITTED = EndCell(ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE)
_ABORTED = EndCell(ErrorCode.INVALID_TXN_STATE, ErrorCode.NONE)
_OPEN = EndCell(TransactionEvent.COMMIT_ASKED, TransactionEvent.ABORT_ASKED)
_NOTHING = EndCell(ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE)
_NOTHING_BUT_AN_EPOCH = EndCell(ErrorCode.INVALID_TXN_STATE, TransactionEvent.EMPTY_ABORT_ASKED)

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

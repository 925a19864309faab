import pytest

from odradek.coordinator.transaction.states import (
    AT_REST,
    FIRST_GENERATION,
    PREPARED,
    SECOND_GENERATION_AGAIN,
    SECOND_GENERATION_NEW,
    TRANSITIONS,
    TransactionEvent,
    TransactionState,
)


def test_transitions_are_those_of_kafka() -> None:
    # From TransactionState of 4.3.1: the states that may come before each.
    before = {
        "Empty": {"Empty", "CompleteCommit", "CompleteAbort"},
        "Ongoing": {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"},
        "PrepareCommit": {"Ongoing"},
        "PrepareAbort": {
            "Ongoing",
            "PrepareEpochFence",
            "Empty",
            "CompleteCommit",
            "CompleteAbort",
        },
        "CompleteCommit": {"PrepareCommit"},
        "CompleteAbort": {"PrepareAbort"},
        "Dead": {"Empty", "CompleteAbort", "CompleteCommit"},
        "PrepareEpochFence": {"Ongoing"},
    }
    ours = {
        target.shown: {row.source.shown for row in TRANSITIONS.transitions if row.target is target}
        for target in TransactionState
    }
    assert ours == before


def test_numbers_are_those_that_kafka_stores() -> None:
    assert [state.shown for state in sorted(TransactionState)] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_ids_expire_only_where_no_transaction_is_open() -> None:
    expiring = {state for state, event in TRANSITIONS.by_event if event is TransactionEvent.EXPIRED}
    assert expiring == AT_REST


def test_the_tables_of_end_txn_hold_every_state_that_is_ever_stored() -> None:
    stored = set(TransactionState) - {
        TransactionState.DEAD,
        TransactionState.PREPARE_EPOCH_FENCE,
    }
    assert set(FIRST_GENERATION) == stored
    assert set(SECOND_GENERATION_NEW) | set(SECOND_GENERATION_AGAIN) == stored
    assert not PREPARED & set(SECOND_GENERATION_NEW)


@pytest.mark.parametrize("table", [FIRST_GENERATION, SECOND_GENERATION_NEW])
def test_the_events_of_end_txn_are_cells_of_the_state_table(table: dict) -> None:
    for state, cell in table.items():
        for verdict in cell:
            if isinstance(verdict, TransactionEvent):
                assert (state, verdict) in TRANSITIONS.by_event

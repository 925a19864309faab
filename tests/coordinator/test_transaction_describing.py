"""DescribeTransactions and ListTransactions, from the coordinator's side."""

import pytest
from support.transaction_bench import ID, NOW_MS, TIMEOUT_MS, A, B, TransactionBench

from odradek.common.errors import ErrorCode
from odradek.coordinator.transaction.describing import TransactionFilter
from odradek.coordinator.transaction.states import TransactionState
from odradek.runtime.steps import run_at_once


@pytest.fixture
def bench() -> TransactionBench:
    return TransactionBench()


def names(bench: TransactionBench, **requested: object) -> list[str]:
    listed = run_at_once(bench.coordinator.list_transactions(TransactionFilter(**requested)))
    return sorted(each.name for each in listed.transactions)


def test_an_open_transaction_is_described_whole(bench: TransactionBench) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    bench.add(producer, B)
    found = bench.coordinator.describe(ID)
    assert found.error is ErrorCode.NONE
    assert (found.state, found.partitions) == ("Ongoing", {A, B})
    assert (found.producer_id, found.producer_epoch) == producer
    assert (found.timeout_ms, found.start_ms) == (TIMEOUT_MS, NOW_MS)


@pytest.mark.parametrize("state", list(TransactionState)[:6])
def test_states_have_the_names_that_clients_know(
    bench: TransactionBench, state: TransactionState
) -> None:
    bench.bring_to(state)
    shown = {
        TransactionState.EMPTY: "Empty",
        TransactionState.ONGOING: "Ongoing",
        TransactionState.PREPARE_COMMIT: "PrepareCommit",
        TransactionState.PREPARE_ABORT: "PrepareAbort",
        TransactionState.COMPLETE_COMMIT: "CompleteCommit",
        TransactionState.COMPLETE_ABORT: "CompleteAbort",
    }
    assert bench.coordinator.describe(ID).state == shown[state]
    assert names(bench, states=[shown[state]]) == [ID]


def test_what_cannot_be_described_says_why(bench: TransactionBench) -> None:
    assert bench.coordinator.describe("x").error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert bench.coordinator.describe("").error is ErrorCode.INVALID_REQUEST
    bench.restart(partitions=())
    assert bench.coordinator.describe("x").error is ErrorCode.NOT_COORDINATOR


def test_without_filters_all_are_listed(bench: TransactionBench) -> None:
    bench.bring_to(TransactionState.ONGOING)
    bench.init(name="other")
    found = run_at_once(bench.coordinator.list_transactions(TransactionFilter()))
    assert found.unknown_states == []
    assert sorted(found.transactions) == [
        ("other", 1001, "Empty"),
        (ID, 1000, "Ongoing"),
    ]


def test_filters_must_all_be_passed(bench: TransactionBench) -> None:
    bench.bring_to(TransactionState.ONGOING)
    bench.init(name="other")
    assert names(bench, producer_ids=[1001, 7]) == ["other"]
    assert names(bench, states=["Ongoing", "CompleteAbort"]) == [ID]
    assert names(bench, states=["Ongoing"], producer_ids=[1001]) == []
    assert names(bench, matches=lambda name: name.startswith("pay")) == [ID]


def test_states_that_do_not_exist_are_reported_and_match_nothing(bench: TransactionBench) -> None:
    bench.init()
    found = run_at_once(bench.coordinator.list_transactions(TransactionFilter(states=["Running"])))
    assert (found.unknown_states, found.transactions) == (["Running"], [])
    assert names(bench, states=["Running", "Empty"]) == [ID]


def test_the_duration_counts_from_the_beginning_and_must_be_passed(
    bench: TransactionBench,
) -> None:
    bench.bring_to(TransactionState.ONGOING)
    bench.clock.advance(500)
    assert names(bench, duration_ms=499) == [ID]
    assert names(bench, duration_ms=500) == []
    assert names(bench, duration_ms=-1) == [ID]

"""AddPartitionsToTxn and AddOffsetsToTxn: partitions join, or are looked up."""

import pytest
from support.transaction_bench import FIRST, NOW_MS, SECOND, A, B, TransactionBench

from odradek.common.errors import ErrorCode
from odradek.coordinator.transaction.states import TransactionState

AT_REST = [
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
]
PREPARED = [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT]


@pytest.fixture
def bench() -> TransactionBench:
    return TransactionBench()


@pytest.mark.parametrize("state", AT_REST)
def test_the_first_partition_opens_the_transaction(
    bench: TransactionBench, state: TransactionState
) -> None:
    producer = bench.bring_to(state, client_version=FIRST)
    bench.clock.advance(17)
    assert bench.add(producer, A, client_version=FIRST).error is ErrorCode.NONE
    now = bench.known().transaction
    assert (now.state, now.partitions) == (TransactionState.ONGOING, {A})
    assert now.start_ms == NOW_MS + 17
    assert bench.stored()[-1][1] is not None


def test_further_partitions_leave_the_beginning_as_it_is(bench: TransactionBench) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    bench.clock.advance(17)
    assert bench.add(producer, B).error is ErrorCode.NONE
    now = bench.known().transaction
    assert (now.partitions, now.start_ms, now.last_update_ms) == ({A, B}, NOW_MS, NOW_MS + 17)


def test_partitions_that_are_in_already_are_not_stored_again(bench: TransactionBench) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    before = len(bench.stored())
    assert bench.add(producer, A).error is ErrorCode.NONE
    assert len(bench.stored()) == before


@pytest.mark.parametrize("client_version", [FIRST, SECOND])
def test_the_generation_of_the_client_is_kept(bench: TransactionBench, client_version: int) -> None:
    producer = bench.init().producer
    bench.add(producer, A, client_version=client_version)
    assert bench.known().transaction.client_version == client_version


@pytest.mark.parametrize("state", PREPARED)
def test_while_markers_are_written_nothing_joins(
    bench: TransactionBench, state: TransactionState
) -> None:
    producer = bench.bring_to(state, client_version=FIRST)
    assert bench.add(producer, B).error is ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("state", PREPARED)
def test_a_prepared_transaction_is_closed_even_before_markers_are_sent(
    bench: TransactionBench, state: TransactionState
) -> None:
    producer = bench.bring_to(state, client_version=FIRST)
    bench.known().pending = None
    assert bench.add(producer, B).error is ErrorCode.CONCURRENT_TRANSACTIONS


def test_while_a_partition_is_on_its_way_others_are_to_come_again(
    bench: TransactionBench,
) -> None:
    producer = bench.init().producer
    bench.log.is_held = True
    first = bench.add(producer, A)
    # Whoever asks is told so, before it is looked at who that is.
    assert bench.add((4, 4), B).error is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.log.release()
    assert first.error is ErrorCode.NONE


def test_another_producer_id_is_no_mapping(bench: TransactionBench) -> None:
    producer = bench.init().producer
    assert bench.add((999, producer.epoch), A).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("difference", [-1, 1])
def test_another_epoch_is_fenced(bench: TransactionBench, difference: int) -> None:
    bench.init()
    producer = bench.init().producer
    requested = (producer.producer_id, producer.epoch + difference)
    assert bench.add(requested, A).error is ErrorCode.PRODUCER_FENCED


def test_an_unknown_id_is_no_mapping(bench: TransactionBench) -> None:
    assert bench.add((1, 0), A).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_an_empty_id_is_an_invalid_request(bench: TransactionBench) -> None:
    assert bench.add((1, 0), A, name="").error is ErrorCode.INVALID_REQUEST
    assert bench.verify((1, 0), A, name="") == {A: ErrorCode.INVALID_REQUEST}


def test_another_broker_is_the_coordinator(bench: TransactionBench) -> None:
    bench.restart(partitions=())
    assert bench.add((1, 0), A).error is ErrorCode.NOT_COORDINATOR
    assert bench.verify((1, 0), A, B) == dict.fromkeys((A, B), ErrorCode.NOT_COORDINATOR)


def test_a_failed_append_adds_nothing(bench: TransactionBench) -> None:
    producer = bench.init().producer
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.add(producer, A).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.state is TransactionState.EMPTY
    bench.log.fail_with = ErrorCode.NONE
    assert bench.add(producer, A).error is ErrorCode.NONE


# -- verify-only -----------------------------------------------------------------------------


def test_a_partition_in_the_transaction_is_confirmed_and_another_is_not(
    bench: TransactionBench,
) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    assert bench.verify(producer, A, B) == {
        A: ErrorCode.NONE,
        B: ErrorCode.TRANSACTION_ABORTABLE,
    }


def test_verifying_adds_nothing(bench: TransactionBench) -> None:
    producer = bench.init().producer
    before = bench.stored()
    assert bench.verify(producer, A) == {A: ErrorCode.TRANSACTION_ABORTABLE}
    assert bench.stored() == before


def test_verifying_does_not_wait_for_what_is_on_its_way(bench: TransactionBench) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    bench.log.is_held = True
    bench.add(producer, B)
    assert bench.verify(producer, A, B) == {
        A: ErrorCode.NONE,
        B: ErrorCode.TRANSACTION_ABORTABLE,
    }


@pytest.mark.parametrize("state", PREPARED)
def test_in_a_prepared_transaction_nothing_can_be_verified(
    bench: TransactionBench, state: TransactionState
) -> None:
    producer = bench.bring_to(state, client_version=FIRST)
    assert bench.verify(producer, A) == {A: ErrorCode.CONCURRENT_TRANSACTIONS}


def test_verifying_tells_other_producers_what_adding_tells_them(bench: TransactionBench) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    older = (producer.producer_id, producer.epoch - 1)
    assert bench.verify(older, A) == {A: ErrorCode.PRODUCER_FENCED}
    assert bench.verify((999, 0), A) == {A: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert bench.verify((1, 0), A, name="x") == {A: ErrorCode.INVALID_PRODUCER_ID_MAPPING}

"""InitProducerId: who gets which epoch, and who is fenced by it."""

import pytest
from support.transaction_bench import (
    FIRST,
    NOW_MS,
    PARTITIONS,
    TIMEOUT_MS,
    A,
    TransactionBench,
)

from odradek.common.errors import ErrorCode
from odradek.coordinator.transaction.states import TransactionState

LAST_USABLE = 32_766


@pytest.fixture
def bench() -> TransactionBench:
    return TransactionBench()


def exhaust(bench: TransactionBench) -> int:
    """Let the id's producer have the last epoch; returns its producer id."""
    bench.init()
    known = bench.known()
    known.transaction = known.transaction._replace(producer_epoch=LAST_USABLE - 1)
    producer = bench.init().producer
    assert producer.epoch == LAST_USABLE
    return producer.producer_id


def test_a_new_id_gets_a_producer_id_and_epoch_0(bench: TransactionBench) -> None:
    assert bench.init().producer == (1000, 0)
    ((name, stored),) = bench.stored()
    assert name == "payments"
    assert stored is not None
    assert (stored.producer_id, stored.producer_epoch, stored.timeout_ms) == (1000, 0, TIMEOUT_MS)
    assert (stored.state, stored.start_ms, stored.last_update_ms) == (
        TransactionState.EMPTY,
        -1,
        NOW_MS,
    )


def test_each_start_gets_the_next_epoch_and_its_own_timeout(bench: TransactionBench) -> None:
    bench.init()
    assert bench.init(timeout_ms=5).producer == (1000, 1)
    assert bench.known().transaction.timeout_ms == 5


@pytest.mark.parametrize(
    "state", [TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT]
)
def test_a_start_after_a_transaction_begins_anew(
    bench: TransactionBench, state: TransactionState
) -> None:
    bench.bring_to(state, client_version=FIRST)
    assert bench.init().producer == (1000, 1)
    assert bench.state is TransactionState.EMPTY
    assert bench.known().transaction.start_ms == -1


def test_an_empty_id_is_an_invalid_request(bench: TransactionBench) -> None:
    assert bench.init(name="").error is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_outside_the_limits_is_refused(bench: TransactionBench, timeout_ms: int) -> None:
    assert bench.init(timeout_ms=timeout_ms).error is ErrorCode.INVALID_TRANSACTION_TIMEOUT


@pytest.mark.parametrize("timeout_ms", [1, 900_000])
def test_a_timeout_at_the_limits_is_taken(bench: TransactionBench, timeout_ms: int) -> None:
    assert bench.init(timeout_ms=timeout_ms).error is ErrorCode.NONE


def test_an_id_is_as_long_as_a_record_can_hold_and_no_longer(bench: TransactionBench) -> None:
    assert bench.init(name="x" * 32_767).error is ErrorCode.NONE
    assert bench.init(name="x" * 32_768).error is ErrorCode.INVALID_REQUEST
    assert len(bench.coordinator.ids) == 1


def test_another_broker_is_the_coordinator(bench: TransactionBench) -> None:
    bench.restart(partitions=())
    assert bench.init().error is ErrorCode.NOT_COORDINATOR


def test_without_a_producer_id_at_hand_the_client_is_to_come_again(
    bench: TransactionBench,
) -> None:
    held, bench.producer_ids = bench.producer_ids, []
    assert bench.init().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.producer_ids = held
    assert bench.init().producer == (1000, 0)


def test_while_one_start_is_on_its_way_another_is_to_come_again(bench: TransactionBench) -> None:
    bench.log.is_held = True
    first = bench.init()
    assert first.got is None
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.log.release()
    assert first.producer == (1000, 0)


@pytest.mark.parametrize(
    ("refused", "reported"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_failed_append_is_reported_in_the_clients_terms_and_changes_nothing(
    bench: TransactionBench, refused: ErrorCode, reported: ErrorCode
) -> None:
    bench.init()
    bench.log.fail_with = refused
    assert bench.init().error is reported
    bench.log.fail_with = ErrorCode.NONE
    assert bench.init().producer == (1000, 1)


def test_who_loses_the_partition_during_an_append_is_no_coordinator(
    bench: TransactionBench,
) -> None:
    bench.log.is_held = True
    answer = bench.init()
    bench.coordinator.note_leadership(
        bench.coordinator.partition_for("payments"), 6, is_leader=False
    )
    bench.log.release()
    assert answer.error is ErrorCode.NOT_COORDINATOR


# -- a transaction is open or being ended ----------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_an_open_transaction_is_aborted_first(version: int) -> None:
    bench = TransactionBench(version=version)
    producer = bench.bring_to(TransactionState.ONGOING)

    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.state is TransactionState.PREPARE_ABORT
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    (markers,) = bench.markers.sent
    assert not markers.committed
    assert markers.partitions == {A}
    assert (markers.producer_id, markers.producer_epoch) == (1000, 1)
    assert markers.transaction_version == (2 if version == 2 else 0)
    bench.markers_written()
    assert bench.state is TransactionState.COMPLETE_ABORT
    assert bench.end(producer, client_version=FIRST).error is ErrorCode.PRODUCER_FENCED
    assert bench.init().producer == (1000, 2)


def test_a_fence_that_was_not_stored_takes_no_second_epoch() -> None:
    bench = TransactionBench(version=1)
    producer = bench.bring_to(TransactionState.ONGOING, client_version=FIRST)
    for _ in range(2):
        bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
        assert bench.init().error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        # Fenced it is all the same: nobody may commit what is about to be aborted.
        assert bench.end(producer, client_version=FIRST).error is ErrorCode.PRODUCER_FENCED
    bench.log.fail_with = ErrorCode.NONE
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.markers.sent[0].producer_epoch == 1
    bench.markers_written()
    assert bench.init().producer == (1000, 2)


def test_after_a_fence_that_was_stored_in_the_end_the_next_takes_an_epoch_again() -> None:
    bench = TransactionBench(version=1)
    bench.bring_to(TransactionState.ONGOING, client_version=FIRST)
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.init()
    bench.log.fail_with = ErrorCode.NONE
    bench.init()
    bench.markers_written()
    producer = bench.init().producer
    assert producer == (1000, 2)
    bench.add(producer, A, client_version=FIRST)
    bench.init()
    assert bench.markers.sent[-1].producer_epoch == 3


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_while_markers_are_written_a_start_is_to_come_again(
    bench: TransactionBench, state: TransactionState
) -> None:
    bench.bring_to(state)
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS


# -- epochs are used up ----------------------------------------------------------------------


def test_after_the_last_epoch_comes_another_producer_id(bench: TransactionBench) -> None:
    exhaust(bench)
    assert bench.init().producer == (1001, 0)


def test_another_producer_id_that_is_not_at_hand_is_to_be_requested_again(
    bench: TransactionBench,
) -> None:
    exhaust(bench)
    bench.producer_ids = []
    assert bench.init().error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_fencing_the_last_producer_of_an_id_takes_the_reserved_epoch() -> None:
    bench = TransactionBench(version=1)
    producer_id = exhaust(bench)
    bench.add((producer_id, LAST_USABLE), A, client_version=FIRST)
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.markers.sent[0].producer_epoch == 32_767
    bench.markers_written()
    assert bench.init().producer == (1001, 0)


def test_fencing_in_the_second_generation_brings_the_next_producer_id(
    bench: TransactionBench,
) -> None:
    producer_id = exhaust(bench)
    bench.add((producer_id, LAST_USABLE), A)
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    (markers,) = bench.markers.sent
    assert (markers.producer_id, markers.producer_epoch) == (producer_id, 32_767)
    bench.markers_written()
    assert bench.init().producer == (1001, 1)


# -- producers that say what they have (KIP-360) ---------------------------------------------


def test_a_producer_that_goes_on_gets_the_next_epoch(bench: TransactionBench) -> None:
    producer = bench.init().producer
    assert bench.init(producer).producer == (1000, 1)


def test_one_that_tries_again_gets_the_same_answer(bench: TransactionBench) -> None:
    producer = bench.init().producer
    bench.init(producer)
    assert bench.init(producer).producer == (1000, 1)


def test_one_that_was_replaced_is_fenced(bench: TransactionBench) -> None:
    producer = bench.init().producer
    bench.init()
    assert bench.init(producer).error is ErrorCode.PRODUCER_FENCED


def test_one_with_another_id_is_fenced(bench: TransactionBench) -> None:
    bench.init()
    assert bench.init((999, 0)).error is ErrorCode.PRODUCER_FENCED


def test_one_whose_transactional_id_was_forgotten_is_given_a_new_producer_id(
    bench: TransactionBench,
) -> None:
    assert bench.init((7, 12)).producer == (1000, 0)


def test_one_at_its_last_epoch_gets_another_producer_id_and_may_try_again(
    bench: TransactionBench,
) -> None:
    producer_id = exhaust(bench)
    assert bench.init((producer_id, LAST_USABLE)).producer == (1001, 0)
    assert bench.init((producer_id, LAST_USABLE)).producer == (1001, 0)


def test_one_that_was_replaced_at_the_last_epoch_is_fenced(bench: TransactionBench) -> None:
    producer_id = exhaust(bench)
    assert bench.init((producer_id, LAST_USABLE - 3)).error is ErrorCode.PRODUCER_FENCED


def test_partitions_keep_their_ids_apart(bench: TransactionBench) -> None:
    names = [f"id-{number}" for number in range(40)]
    assert len({bench.init(name=name).producer.producer_id for name in names}) == 40
    assert {bench.coordinator.partition_for(name) for name in names} == set(range(PARTITIONS))

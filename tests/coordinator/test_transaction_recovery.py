"""Another coordinator takes over, at every step: nothing is lost, nothing is decided twice."""

import pytest
from support.memory_log import PARTITIONS
from support.transaction_bench import FIRST, ID, SECOND, A, B, TransactionBench

from odradek.common.errors import ErrorCode, KafkaError
from odradek.coordinator.transaction.describing import TransactionFilter
from odradek.coordinator.transaction.records import transaction_record
from odradek.coordinator.transaction.states import TransactionState
from odradek.runtime import long_work
from odradek.runtime.steps import run_at_once

LAST_USABLE = 32_766


@pytest.fixture
def bench() -> TransactionBench:
    return TransactionBench()


@pytest.mark.parametrize("client_version", [FIRST, SECOND])
@pytest.mark.parametrize("state", list(TransactionState)[:6])
def test_every_state_is_found_again(
    bench: TransactionBench, state: TransactionState, client_version: int
) -> None:
    bench.bring_to(state, client_version=client_version)
    before = bench.known().transaction
    bench.restart()
    assert bench.known().transaction == before._replace(last_producer_epoch=-1)


@pytest.mark.parametrize("client_version", [FIRST, SECOND])
@pytest.mark.parametrize("commit", [True, False])
def test_what_is_decided_is_completed_with_the_same_markers(
    bench: TransactionBench, commit: bool, client_version: int
) -> None:
    producer = bench.bring_to(TransactionState.ONGOING, client_version=client_version)
    bench.add(producer, B, client_version=client_version)
    ended = bench.end(producer, commit=commit, client_version=client_version)
    (first,) = bench.markers.sent

    bench.restart()
    (again,) = bench.markers.sent
    assert again == first
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.markers_written()
    assert bench.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    # The client that lost its answer asks again and is told the same.
    again_ended = bench.end(producer, commit=commit, client_version=client_version)
    assert again_ended.producer == ended.producer


def test_an_open_transaction_goes_on_under_the_next_coordinator(bench: TransactionBench) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    bench.restart()
    assert bench.add(producer, B).error is ErrorCode.NONE
    assert bench.end(producer).error is ErrorCode.NONE
    assert bench.markers.sent[0].partitions == {A, B}


def test_a_rotation_that_was_decided_is_completed(bench: TransactionBench) -> None:
    bench.init()
    known = bench.known()
    known.transaction = known.transaction._replace(producer_epoch=LAST_USABLE)
    producer = (1000, LAST_USABLE)
    bench.add(producer, A)
    assert bench.end(producer).producer == (1001, 0)

    bench.restart()
    (markers,) = bench.markers.sent
    assert (markers.producer_id, markers.producer_epoch) == (1000, 32_767)
    bench.markers_written()
    assert bench.end(producer).producer == (1001, 0)
    bench.restart()
    assert bench.end(producer).producer == (1001, 0)
    assert bench.add((1001, 0), A).error is ErrorCode.NONE


def test_aborting_nothing_is_completed_without_markers(bench: TransactionBench) -> None:
    producer = bench.init().producer
    bench.log.is_held = True
    bench.end(producer, commit=False)  # its first record is in the log, its second is not
    bench.restart()
    assert not bench.markers.sent
    bench.log.is_held = False
    bench.log.flush()
    assert bench.state is TransactionState.COMPLETE_ABORT
    assert bench.init().error is ErrorCode.NONE


def test_a_decision_that_only_the_log_knows_is_carried_out(bench: TransactionBench) -> None:
    """The broker died after the append and before the answer."""
    producer = bench.bring_to(TransactionState.ONGOING)
    bench.log.is_held = True
    lost = bench.end(producer)
    assert lost.got is None
    bench.restart()
    assert bench.state is TransactionState.PREPARE_COMMIT
    assert bench.markers.sent[0].committed
    bench.log.is_held = False
    bench.markers_written()
    assert bench.end(producer).producer == (1000, 1)


def test_markers_of_a_partition_that_is_led_elsewhere_are_forgotten(
    bench: TransactionBench,
) -> None:
    bench.bring_to(TransactionState.PREPARE_COMMIT)
    partition = bench.coordinator.partition_for(ID)
    bench.coordinator.note_leadership(partition, 6, is_leader=False)
    assert not bench.markers.waiting
    assert bench.init().error is ErrorCode.NOT_COORDINATOR
    assert bench.end((1000, 0)).error is ErrorCode.NOT_COORDINATOR


def test_markers_that_come_in_after_the_partition_was_lost_change_nothing(
    bench: TransactionBench,
) -> None:
    bench.bring_to(TransactionState.PREPARE_COMMIT)
    waiting = bench.markers._waiting[0][1]
    partition = bench.coordinator.partition_for(ID)
    before = bench.stored()
    bench.coordinator.note_leadership(partition, 6, is_leader=False)
    waiting(ErrorCode.NONE)
    bench.log.flush()
    assert bench.stored() == before


def test_after_a_new_epoch_of_the_same_leader_markers_carry_it(bench: TransactionBench) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    partition = bench.coordinator.partition_for(ID)
    bench.coordinator.note_leadership(partition, 9, is_leader=True)
    bench.end(producer)
    assert bench.markers.sent[0].coordinator_epoch == 9


def test_markers_are_dropped_before_a_partition_is_loaded(bench: TransactionBench) -> None:
    assert sorted(bench.markers.dropped) == list(range(PARTITIONS))


# -- loading ---------------------------------------------------------------------------------


@pytest.fixture
def loading_bench(monkeypatch: pytest.MonkeyPatch) -> TransactionBench:
    """A coordinator that has read a record of a log, and no more."""
    monkeypatch.setattr(long_work, "STEP_SECONDS", 0.0)
    monkeypatch.setattr(long_work, "ITEMS_AT_LEAST", 1)
    bench = TransactionBench(load_slice_bytes=1)
    bench.bring_to(TransactionState.ONGOING)
    bench.restart()
    return bench


def test_while_it_loads_every_request_gets_a_retriable_error(
    loading_bench: TransactionBench,
) -> None:
    bench = loading_bench
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert bench.init().error is loading
    assert bench.add((1000, 0), A).error is loading
    assert bench.verify((1000, 0), A) == {A: loading}
    assert bench.end((1000, 0)).error is loading
    assert bench.coordinator.describe(ID).error is loading
    with pytest.raises(KafkaError) as refusal:
        run_at_once(bench.coordinator.list_transactions(TransactionFilter()))
    assert refusal.value.code is loading
    for _ in range(3):
        bench.advance(0)
    assert bench.end((1000, 0)).error is ErrorCode.NONE


def test_a_partition_that_is_lost_while_it_loads_is_no_longer_loaded(
    loading_bench: TransactionBench,
) -> None:
    bench = loading_bench
    bench.coordinator.note_leadership(bench.coordinator.partition_for(ID), 6, is_leader=False)
    for _ in range(3):
        bench.advance(0)
    assert bench.init().error is ErrorCode.NOT_COORDINATOR
    assert not bench.coordinator.ids


def test_a_record_that_cannot_be_read_takes_nobody_else_away(bench: TransactionBench) -> None:
    bench.bring_to(TransactionState.ONGOING)
    partition = bench.coordinator.partition_for(ID)
    for key, value in ((None, b"x"), (b"\0\x09", b"x"), (b"\0\0\0\x01x", b"\0\x07"), (b"", None)):
        bench.log.put(partition, [(key, value)])
    bench.restart()
    assert [known.name for known in bench.coordinator.ids] == [ID]


def test_a_tombstone_ends_an_id(bench: TransactionBench) -> None:
    bench.init()
    partition = bench.coordinator.partition_for(ID)
    key = transaction_record(ID, bench.known().transaction, 2).key
    bench.log.put(partition, [(key, None)])
    bench.restart()
    assert not bench.coordinator.ids
    assert bench.end((1000, 0)).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_after_the_end_nobody_is_coordinated_here(bench: TransactionBench) -> None:
    bench.bring_to(TransactionState.ONGOING)
    bench.coordinator.close()
    assert bench.end((1000, 0)).error is ErrorCode.NOT_COORDINATOR
    assert bench.coordinator.describe(ID).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(KafkaError) as refusal:
        run_at_once(bench.coordinator.list_transactions(TransactionFilter()))
    assert refusal.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.advance(10_000_000)
    assert len(bench.timers) == 0

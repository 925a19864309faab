"""What time ends: transactions open for too long, and ids that nobody uses."""

import pytest
from support.transaction_bench import FIRST, ID, TIMEOUT_MS, A, TransactionBench

from odradek.common.errors import ErrorCode
from odradek.coordinator.transaction.states import TransactionState

CHECK_MS = 10_000
WEEK_MS = 7 * 24 * 60 * 60 * 1000
REMOVE_CHECK_MS = 3_600_000


@pytest.fixture
def bench() -> TransactionBench:
    return TransactionBench()


def pass_in_steps(bench: TransactionBench, milliseconds: int, step_ms: int = CHECK_MS) -> None:
    for _ in range(0, milliseconds, step_ms):
        bench.advance(step_ms)


# -- transactions ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_transaction_over_its_time_is_aborted_and_its_producer_fenced(version: int) -> None:
    bench = TransactionBench(version=version)
    producer = bench.bring_to(TransactionState.ONGOING)
    pass_in_steps(bench, TIMEOUT_MS)
    assert bench.state is TransactionState.ONGOING  # exactly at its limit
    bench.advance(CHECK_MS)
    assert bench.state is TransactionState.PREPARE_ABORT
    (markers,) = bench.markers.sent
    assert not markers.committed
    assert (markers.producer_id, markers.producer_epoch) == (1000, 1)
    bench.markers_written()
    assert bench.state is TransactionState.COMPLETE_ABORT
    assert bench.add(producer, A).error is ErrorCode.PRODUCER_FENCED
    assert bench.end(producer, client_version=FIRST).error is ErrorCode.PRODUCER_FENCED


def test_a_producer_of_the_second_generation_learns_of_the_abort_when_it_ends(
    bench: TransactionBench,
) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    pass_in_steps(bench, TIMEOUT_MS + CHECK_MS)
    bench.markers_written()
    assert bench.end(producer, commit=True).error is ErrorCode.INVALID_TXN_STATE
    assert bench.end(producer, commit=False).producer == (1000, 1)


def test_a_producer_that_comes_back_with_its_epoch_after_the_abort_goes_on(
    bench: TransactionBench,
) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    pass_in_steps(bench, TIMEOUT_MS + CHECK_MS)
    bench.markers_written()
    assert bench.init(producer).producer == (1000, 1)


def test_the_time_limit_counts_from_the_first_partition(bench: TransactionBench) -> None:
    producer = bench.init().producer
    pass_in_steps(bench, 10 * TIMEOUT_MS)
    bench.add(producer, A)
    pass_in_steps(bench, TIMEOUT_MS)
    assert bench.end(producer).error is ErrorCode.NONE


def test_an_abort_that_is_not_stored_is_tried_at_the_next_look(bench: TransactionBench) -> None:
    bench.bring_to(TransactionState.ONGOING)
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    pass_in_steps(bench, TIMEOUT_MS + 2 * CHECK_MS)
    assert bench.state is TransactionState.ONGOING
    bench.log.fail_with = ErrorCode.NONE
    bench.advance(CHECK_MS)
    assert bench.markers.sent[0].producer_epoch == 1


def test_what_is_on_its_way_is_not_aborted(bench: TransactionBench) -> None:
    producer = bench.bring_to(TransactionState.ONGOING)
    bench.log.is_held = True
    ended = bench.end(producer)
    pass_in_steps(bench, TIMEOUT_MS + CHECK_MS)
    bench.log.release()
    assert ended.error is ErrorCode.NONE
    assert [markers.committed for markers in bench.markers.sent] == [True]


def test_a_transaction_without_a_time_limit_stays_open(bench: TransactionBench) -> None:
    bench.bring_to(TransactionState.ONGOING)
    known = bench.known()
    known.transaction = known.transaction._replace(timeout_ms=2**31 - 1, start_ms=-(2**40))
    bench.advance(CHECK_MS)
    assert bench.state is TransactionState.ONGOING


def test_without_a_producer_id_at_hand_the_abort_waits(bench: TransactionBench) -> None:
    bench.bring_to(TransactionState.ONGOING)
    known = bench.known()
    known.transaction = known.transaction._replace(producer_epoch=32_766)
    held, bench.producer_ids = bench.producer_ids, []
    pass_in_steps(bench, TIMEOUT_MS + CHECK_MS)
    assert bench.state is TransactionState.ONGOING
    bench.producer_ids = held
    bench.advance(CHECK_MS)
    assert bench.state is TransactionState.PREPARE_ABORT


# -- transactional ids -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        TransactionState.EMPTY,
        TransactionState.COMPLETE_COMMIT,
        TransactionState.COMPLETE_ABORT,
    ],
)
def test_an_unused_id_is_forgotten(bench: TransactionBench, state: TransactionState) -> None:
    bench.bring_to(state)
    bench.advance(WEEK_MS - 1)
    assert len(bench.coordinator.ids) == 1
    bench.advance(REMOVE_CHECK_MS)
    assert not bench.coordinator.ids
    assert bench.stored()[-1] == (ID, None)
    assert bench.coordinator.describe(ID).error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    bench.restart()
    assert not bench.coordinator.ids
    assert bench.init((1000, 0)).producer == (1001, 0)


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_an_id_with_a_transaction_is_kept(bench: TransactionBench, state: TransactionState) -> None:
    bench.bring_to(state)
    bench.advance(WEEK_MS + REMOVE_CHECK_MS)
    assert bench.state is state


def test_an_id_that_is_being_removed_takes_no_request(bench: TransactionBench) -> None:
    bench.init()
    bench.log.is_held = True
    bench.advance(WEEK_MS + REMOVE_CHECK_MS)
    assert bench.init().error is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.log.is_held = False
    bench.log.flush()
    assert bench.init().producer == (1001, 0)


def test_a_removal_that_is_not_stored_is_none(bench: TransactionBench) -> None:
    bench.init()
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.advance(WEEK_MS + REMOVE_CHECK_MS)
    bench.log.fail_with = ErrorCode.NONE
    assert bench.init().producer == (1000, 1)
    bench.advance(WEEK_MS + REMOVE_CHECK_MS)
    assert not bench.coordinator.ids


def test_many_ids_are_removed_in_batches_of_bounded_size(bench: TransactionBench) -> None:
    names = [f"{number:04}" + "x" * 500 for number in range(60)]
    for name in names:
        bench.init(name=name)
    batches_before = {number: len(found) for number, found in bench.log.batches.items()}
    bench.advance(WEEK_MS + REMOVE_CHECK_MS)
    assert not bench.coordinator.ids
    removed = []
    for number, batches in bench.log.batches.items():
        tombstones = batches[batches_before[number] :]
        assert len(tombstones) > 1
        for batch in tombstones:
            assert sum(len(record.key or b"") for record in batch.records) <= 16_384
            removed += [record for record in batch.records if record.value is None]
    assert len(removed) == 60


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000])
def test_a_wall_clock_that_is_set_neither_aborts_a_transaction_nor_spares_it(
    bench: TransactionBench, step_ms: int
) -> None:
    bench.bring_to(TransactionState.ONGOING)
    bench.clock.set_wall_clock(bench.clock.now_ms() + step_ms)
    pass_in_steps(bench, TIMEOUT_MS)
    assert bench.state is TransactionState.ONGOING
    bench.advance(CHECK_MS)
    assert bench.state is TransactionState.PREPARE_ABORT


@pytest.mark.parametrize("step_ms", [0, 3_600_000, -3_600_000])
def test_a_loaded_transaction_has_all_of_its_time_whatever_the_wall_clock_says(
    bench: TransactionBench, step_ms: int
) -> None:
    bench.bring_to(TransactionState.ONGOING)
    pass_in_steps(bench, TIMEOUT_MS - CHECK_MS)
    bench.clock.set_wall_clock(bench.clock.now_ms() + step_ms)
    bench.restart()
    pass_in_steps(bench, TIMEOUT_MS)
    assert bench.state is TransactionState.ONGOING
    bench.advance(CHECK_MS)
    assert bench.state is TransactionState.PREPARE_ABORT

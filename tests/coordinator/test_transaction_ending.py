"""EndTxn, in both generations of the protocol: every cell of the tables."""

import pytest
from support.transaction_bench import (
    FIRST,
    ID,
    LEADER_EPOCH,
    NOW_MS,
    SECOND,
    A,
    B,
    TransactionBench,
)

from odradek.common.errors import ErrorCode
from odradek.coordinator.transaction.states import TransactionState

EMPTY = TransactionState.EMPTY
ONGOING = TransactionState.ONGOING
PREPARE_COMMIT = TransactionState.PREPARE_COMMIT
PREPARE_ABORT = TransactionState.PREPARE_ABORT
COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
COMPLETE_ABORT = TransactionState.COMPLETE_ABORT

NONE = ErrorCode.NONE
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
INVALID = ErrorCode.INVALID_TXN_STATE
FENCED = ErrorCode.PRODUCER_FENCED
LAST_USABLE = 32_766


@pytest.fixture
def bench() -> TransactionBench:
    return TransactionBench()


def next_epoch(producer: tuple[int, int]) -> tuple[int, int]:
    return producer[0], producer[1] + 1


# -- the cells, from Kafka 4.3.1's TransactionCoordinator -------------------------------------


@pytest.mark.parametrize(
    ("state", "commit", "error", "then"),
    [
        (EMPTY, True, INVALID, EMPTY),
        (EMPTY, False, INVALID, EMPTY),
        (ONGOING, True, NONE, PREPARE_COMMIT),
        (ONGOING, False, NONE, PREPARE_ABORT),
        (PREPARE_COMMIT, True, CONCURRENT, PREPARE_COMMIT),
        (PREPARE_COMMIT, False, INVALID, PREPARE_COMMIT),
        (PREPARE_ABORT, True, INVALID, PREPARE_ABORT),
        (PREPARE_ABORT, False, CONCURRENT, PREPARE_ABORT),
        (COMPLETE_COMMIT, True, NONE, COMPLETE_COMMIT),
        (COMPLETE_COMMIT, False, INVALID, COMPLETE_COMMIT),
        (COMPLETE_ABORT, True, INVALID, COMPLETE_ABORT),
        (COMPLETE_ABORT, False, NONE, COMPLETE_ABORT),
    ],
)
def test_first_generation(
    bench: TransactionBench,
    state: TransactionState,
    commit: bool,
    error: ErrorCode,
    then: TransactionState,
) -> None:
    producer = bench.bring_to(state, client_version=FIRST)
    bench.known().pending = None  # a prepared one, before its markers are sent
    assert bench.end(producer, commit=commit, client_version=FIRST).error is error
    assert bench.state is then


@pytest.mark.parametrize(
    ("state", "commit", "error", "then"),
    [
        (EMPTY, True, INVALID, EMPTY),
        (EMPTY, False, NONE, COMPLETE_ABORT),
        (ONGOING, True, NONE, PREPARE_COMMIT),
        (ONGOING, False, NONE, PREPARE_ABORT),
        (PREPARE_COMMIT, True, FENCED, PREPARE_COMMIT),
        (PREPARE_COMMIT, False, FENCED, PREPARE_COMMIT),
        (PREPARE_ABORT, True, FENCED, PREPARE_ABORT),
        (PREPARE_ABORT, False, FENCED, PREPARE_ABORT),
        (COMPLETE_COMMIT, True, INVALID, COMPLETE_COMMIT),
        (COMPLETE_COMMIT, False, NONE, COMPLETE_ABORT),
        (COMPLETE_ABORT, True, INVALID, COMPLETE_ABORT),
        (COMPLETE_ABORT, False, NONE, COMPLETE_ABORT),
    ],
)
def test_second_generation_with_the_epoch_of_now(
    bench: TransactionBench,
    state: TransactionState,
    commit: bool,
    error: ErrorCode,
    then: TransactionState,
) -> None:
    bench.bring_to(state)
    bench.known().pending = None
    now = bench.known().transaction
    answer = bench.end((now.producer_id, now.producer_epoch), commit=commit)
    assert answer.error is error
    assert bench.state is then
    if error is NONE:
        assert answer.producer == (now.producer_id, now.producer_epoch + 1)


@pytest.mark.parametrize(
    ("state", "commit", "error"),
    [
        (EMPTY, True, FENCED),
        (EMPTY, False, FENCED),
        (ONGOING, True, FENCED),
        (ONGOING, False, FENCED),
        (PREPARE_COMMIT, True, CONCURRENT),
        (PREPARE_COMMIT, False, INVALID),
        (PREPARE_ABORT, True, INVALID),
        (PREPARE_ABORT, False, CONCURRENT),
        (COMPLETE_COMMIT, True, NONE),
        (COMPLETE_COMMIT, False, INVALID),
        (COMPLETE_ABORT, True, INVALID),
        (COMPLETE_ABORT, False, NONE),
    ],
)
def test_second_generation_with_the_epoch_before(
    bench: TransactionBench, state: TransactionState, commit: bool, error: ErrorCode
) -> None:
    bench.init()
    bench.bring_to(state)
    bench.known().pending = None
    now = bench.known().transaction
    answer = bench.end((now.producer_id, now.producer_epoch - 1), commit=commit)
    assert answer.error is error
    assert bench.state is state
    if error is NONE:
        assert answer.producer == (now.producer_id, now.producer_epoch)


@pytest.mark.parametrize("state", list(TransactionState)[:6])
@pytest.mark.parametrize("difference", [-2, 1])
def test_any_other_epoch_is_fenced(
    bench: TransactionBench, state: TransactionState, difference: int
) -> None:
    bench.init()
    bench.init()
    bench.bring_to(state)
    bench.known().pending = None
    now = bench.known().transaction
    requested = (now.producer_id, now.producer_epoch + difference)
    assert bench.end(requested).error is FENCED
    assert bench.end(requested, client_version=FIRST).error is FENCED


@pytest.mark.parametrize("client_version", [FIRST, SECOND])
def test_who_is_not_the_producer_is_refused(bench: TransactionBench, client_version: int) -> None:
    bench.bring_to(ONGOING)
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert bench.end((999, 0), client_version=client_version).error is mapping
    assert bench.end((1, 0), name="x", client_version=client_version).error is mapping
    empty = bench.end((1, 0), name="", client_version=client_version)
    assert empty.error is ErrorCode.INVALID_REQUEST
    bench.restart(partitions=())
    elsewhere = bench.end((999, 0), client_version=client_version)
    assert elsewhere.error is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("client_version", [FIRST, SECOND])
def test_while_a_change_is_on_its_way_an_end_is_to_come_again(
    bench: TransactionBench, client_version: int
) -> None:
    producer = bench.bring_to(ONGOING)
    bench.log.is_held = True
    bench.add(producer, B)
    assert bench.end(producer, client_version=client_version).error is CONCURRENT


def test_the_first_generation_looks_at_the_epoch_before_what_is_on_its_way(
    bench: TransactionBench,
) -> None:
    producer = bench.bring_to(ONGOING)
    bench.log.is_held = True
    bench.add(producer, B)
    older = (producer.producer_id, producer.epoch - 1)
    assert bench.end(older, client_version=FIRST).error is FENCED
    assert bench.end(older, client_version=SECOND).error is CONCURRENT


# -- what an end does --------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("client_version", "marker_epoch"), [(FIRST, 0), (SECOND, 1)])
def test_markers_go_to_every_partition_under_the_epoch_of_the_generation(
    bench: TransactionBench, commit: bool, client_version: int, marker_epoch: int
) -> None:
    producer = bench.bring_to(ONGOING)
    bench.add(producer, B)
    bench.end(producer, commit=commit, client_version=client_version)
    (markers,) = bench.markers.sent
    assert markers.transactional_id == ID
    assert markers.coordinator_partition == bench.coordinator.partition_for(ID)
    assert markers.coordinator_epoch == LEADER_EPOCH
    assert (markers.producer_id, markers.producer_epoch) == (1000, marker_epoch)
    assert (markers.committed, markers.partitions) == (commit, {A, B})
    assert markers.transaction_version == client_version


def test_the_client_is_answered_when_the_decision_is_stored_and_not_before(
    bench: TransactionBench,
) -> None:
    producer = bench.bring_to(ONGOING)
    bench.log.is_held = True
    answer = bench.end(producer)
    assert answer.got is None
    assert not bench.markers.sent
    bench.log.release()
    assert answer.producer == (1000, 1)
    assert len(bench.markers.sent) == 1
    assert bench.state is PREPARE_COMMIT


def test_a_decision_that_is_not_stored_is_none(bench: TransactionBench) -> None:
    producer = bench.bring_to(ONGOING)
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.end(producer).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.state is ONGOING
    assert not bench.markers.sent
    bench.log.fail_with = NONE
    assert bench.end(producer, commit=False).producer == (1000, 1)


def test_when_the_markers_are_written_the_id_is_at_rest(bench: TransactionBench) -> None:
    producer = bench.bring_to(ONGOING)
    bench.clock.advance(9)
    bench.end(producer)
    bench.markers_written()
    now = bench.known().transaction
    assert (now.state, now.partitions) == (COMPLETE_COMMIT, frozenset())
    assert (now.start_ms, now.last_update_ms) == (NOW_MS, NOW_MS + 9)
    assert bench.stored()[-1] == (ID, now._replace(last_producer_epoch=-1))


def test_an_end_that_cannot_be_stored_is_tried_until_it_is(bench: TransactionBench) -> None:
    producer = bench.bring_to(PREPARE_COMMIT, client_version=FIRST)
    bench.log.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.markers_written()
    bench.advance(100)
    assert bench.state is PREPARE_COMMIT
    assert bench.add(producer, A).error is CONCURRENT
    bench.log.fail_with = NONE
    bench.advance(100)
    assert bench.state is COMPLETE_COMMIT
    assert bench.add(producer, A).error is NONE


def test_refused_markers_leave_the_transaction_to_the_coordinator_that_refused_them(
    bench: TransactionBench,
) -> None:
    bench.bring_to(PREPARE_COMMIT)
    bench.markers_written(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    assert bench.state is PREPARE_COMMIT
    assert bench.init().error is CONCURRENT


def test_aborting_nothing_writes_no_marker_but_two_records(bench: TransactionBench) -> None:
    producer = bench.init().producer
    assert bench.end(producer, commit=False).producer == (1000, 1)
    assert not bench.markers.sent
    stored = [transaction for _, transaction in bench.stored() if transaction is not None]
    assert [each.state for each in stored] == [EMPTY, PREPARE_ABORT, COMPLETE_ABORT]
    assert [each.producer_epoch for each in stored] == [0, 1, 1]
    assert stored[-1].start_ms == NOW_MS


# -- the second generation at the last epoch ---------------------------------------------------


def exhausted(bench: TransactionBench) -> tuple[int, int]:
    """A producer in a transaction under the last epoch there is."""
    bench.init()
    known = bench.known()
    known.transaction = known.transaction._replace(producer_epoch=LAST_USABLE)
    producer = (1000, LAST_USABLE)
    assert bench.add(producer, A).error is NONE
    return producer


@pytest.mark.parametrize("commit", [True, False])
def test_the_last_epoch_ends_with_another_producer_id(
    bench: TransactionBench, commit: bool
) -> None:
    producer = exhausted(bench)
    assert bench.end(producer, commit=commit).producer == (1001, 0)
    (markers,) = bench.markers.sent
    assert (markers.producer_id, markers.producer_epoch) == (1000, 32_767)
    prepared = bench.known().transaction
    assert (prepared.producer_id, prepared.next_producer_id) == (1000, 1001)
    bench.markers_written()
    now = bench.known().transaction
    assert (now.producer_id, now.producer_epoch) == (1001, 0)
    assert (now.previous_producer_id, now.next_producer_id) == (1000, -1)
    assert bench.add((1001, 0), A).error is NONE


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_at_the_last_epoch_that_comes_again_is_answered_as_before(
    bench: TransactionBench, commit: bool
) -> None:
    producer = exhausted(bench)
    bench.end(producer, commit=commit)
    assert bench.end(producer, commit=commit).error is CONCURRENT
    bench.markers_written()
    assert bench.end(producer, commit=commit).producer == (1001, 0)
    assert bench.end(producer, commit=not commit).error is INVALID


def test_after_the_next_transaction_began_the_former_producer_id_is_fenced(
    bench: TransactionBench,
) -> None:
    producer = exhausted(bench)
    bench.end(producer)
    bench.markers_written()
    assert bench.add((1001, 0), A).error is NONE
    assert bench.end(producer).error is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_without_a_producer_id_at_hand_the_end_is_to_come_again(bench: TransactionBench) -> None:
    producer = exhausted(bench)
    bench.producer_ids = []
    assert bench.end(producer).error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert bench.state is ONGOING


def test_the_first_generation_ends_its_last_epoch_with_the_same_id(
    bench: TransactionBench,
) -> None:
    producer = exhausted(bench)
    assert bench.end(producer, client_version=FIRST).producer == producer


def test_the_next_transaction_of_the_second_generation_has_the_next_epoch(
    bench: TransactionBench,
) -> None:
    producer = bench.init().producer
    for epoch in range(5):
        assert producer == (1000, epoch)
        bench.add(producer, A)
        producer = bench.end(producer).producer
        bench.markers_written()
    assert bench.add((1000, 4), A).error is FENCED

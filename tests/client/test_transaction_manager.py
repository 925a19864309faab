"""A producer's identity and the states of its transactions."""

from __future__ import annotations

import pytest

from odradek.client.producer.errors import (
    AbortableTransactionError,
    FatalProducerError,
    ProducerFencedError,
)
from odradek.client.producer.producer_batch import NO_IDENTITY, ProducerIdentity
from odradek.client.producer.transaction_manager import TransactionManager, TransactionState
from odradek.common.errors import ErrorCode, KafkaError

State = TransactionState
FIRST = ProducerIdentity(7, 0)


def ready() -> TransactionManager:
    manager = TransactionManager("id")
    manager.enter(State.INITIALIZING)
    manager.initialized(FIRST)
    return manager


def in_transaction(*, is_second_generation: bool = True) -> TransactionManager:
    manager = ready()
    manager.begin(is_second_generation=is_second_generation)
    return manager


def test_a_transaction_goes_its_way() -> None:
    manager = in_transaction()
    manager.require_sending()
    manager.enter(State.COMMITTING)
    manager.ended(ProducerIdentity(7, 1))
    assert (manager.state, manager.identity) == (State.READY, ProducerIdentity(7, 1))


def test_an_idempotent_producer_needs_an_identity_and_no_transaction() -> None:
    manager = TransactionManager()
    assert manager.needs_identity
    manager.require_sending()
    manager.initialized(FIRST)
    assert not manager.needs_identity
    assert manager.may_send_to("t", 0)
    manager.batch_failed(KafkaError(ErrorCode.INVALID_RECORD), leaves_gap=True)
    assert manager.error is None
    with pytest.raises(RuntimeError, match="no transactional_id"):
        manager.enter(State.INITIALIZING)


def test_epochs_are_counted_until_the_last_one() -> None:
    manager = TransactionManager()
    manager.initialized(ProducerIdentity(7, 0x7FFE))
    manager.bump_epoch()
    assert manager.identity == ProducerIdentity(7, 0x7FFF)
    manager.bump_epoch()
    assert manager.identity == NO_IDENTITY


def test_in_the_first_generation_partitions_are_added_before_they_get_records() -> None:
    manager = in_transaction(is_second_generation=False)
    manager.add_partition("t", 0)
    assert not manager.may_send_to("t", 0)
    assert not manager.is_started
    assert manager.partitions_to_add == [("t", 0)]
    manager.partitions_added([("t", 0)])
    assert manager.may_send_to("t", 0)
    assert manager.is_started
    assert manager.partitions_to_add == []
    manager.add_partition("t", 0)
    assert manager.partitions_to_add == []


def test_in_the_second_generation_the_first_produce_adds_its_partition() -> None:
    manager = in_transaction()
    assert not manager.is_started
    manager.add_partition("t", 0)
    assert manager.may_send_to("t", 0)
    assert manager.is_started
    assert manager.partitions_to_add == []


def test_partitions_are_forgotten_with_their_transaction() -> None:
    manager = in_transaction()
    manager.add_partition("t", 0)
    manager.enter(State.ABORTING)
    manager.ended(None)
    assert not manager.may_send_to("t", 0)
    assert not manager.is_started


@pytest.mark.parametrize(
    "failure", [KafkaError(ErrorCode.INVALID_RECORD), KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)]
)
def test_a_batch_that_failed_must_be_aborted(failure: KafkaError) -> None:
    manager = in_transaction()
    manager.batch_failed(failure, leaves_gap=True)
    assert manager.must_bump_epoch
    with pytest.raises(AbortableTransactionError, match=failure.code.name):
        manager.require_sending()
    with pytest.raises(AbortableTransactionError):
        manager.enter(State.COMMITTING)
    manager.enter(State.ABORTING)
    manager.ended(ProducerIdentity(7, 1))
    assert not manager.must_bump_epoch
    manager.begin(is_second_generation=True)
    manager.require_sending()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.PRODUCER_FENCED, ProducerFencedError),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FatalProducerError),
    ],
)
def test_after_some_errors_a_producer_cannot_go_on(code: ErrorCode, kind: type[Exception]) -> None:
    manager = in_transaction()
    manager.batch_failed(KafkaError(code), leaves_gap=True)
    for state in (State.ABORTING, State.COMMITTING, State.IN_TRANSACTION):
        with pytest.raises(kind):
            manager.enter(state)
    with pytest.raises(kind):
        manager.require_sending()


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.PRODUCER_FENCED, ProducerFencedError),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ProducerFencedError),
        (ErrorCode.TRANSACTION_ABORTABLE, AbortableTransactionError),
        (ErrorCode.ILLEGAL_GENERATION, AbortableTransactionError),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, AbortableTransactionError),
        (ErrorCode.INVALID_TXN_STATE, FatalProducerError),
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, FatalProducerError),
    ],
)
def test_a_coordinators_refusal_has_one_kind(code: ErrorCode, kind: type[Exception]) -> None:
    manager = in_transaction()
    error = manager.coordinator_refused(code, "EndTxn")
    assert type(error) is kind
    with pytest.raises(kind):
        manager.raise_error()
    assert manager.is_mapping_lost is (code == ErrorCode.INVALID_PRODUCER_ID_MAPPING)


def test_while_aborting_every_refusal_is_final() -> None:
    manager = in_transaction()
    manager.enter(State.ABORTING)
    error = manager.coordinator_refused(ErrorCode.TRANSACTION_ABORTABLE, "EndTxn")
    assert type(error) is FatalProducerError
    assert manager.state is State.FATAL_ERROR


def test_a_refused_client_may_initialize_again() -> None:
    manager = TransactionManager("id")
    manager.enter(State.INITIALIZING)
    manager.refused()
    manager.enter(State.INITIALIZING)
    manager.initialized(FIRST)
    assert manager.state is State.READY


@pytest.mark.parametrize("state", [State.COMMITTING, State.ABORTING, State.IN_TRANSACTION])
def test_calls_out_of_order_are_named(state: State) -> None:
    with pytest.raises(RuntimeError, match="uninitialized cannot become"):
        TransactionManager("id").enter(state)


def test_what_timed_out_may_be_called_again() -> None:
    for state in (State.COMMITTING, State.ABORTING):
        manager = in_transaction()
        manager.enter(state)
        manager.enter(state)
        assert manager.state is state

"""The sender's decisions, in virtual time."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.producer_model import LEADER, FaultyRun, ProducerModel

from odradek.client.producer.errors import DeliveryTimeoutError, RecordTooLargeError
from odradek.client.producer.producer_batch import NO_IDENTITY, ProducerIdentity
from odradek.client.producer.sender import NEVER, BatchAnswer
from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.records import RecordBatch

ERROR = ErrorCode


def stamps(model: ProducerModel) -> list[tuple[int, int]]:
    """Epoch and sequence of the batches in flight."""
    batches = [RecordBatch(data) for request in model.requests for data in request.data]
    return [(batch.producer_epoch, batch.base_sequence) for batch in batches]


# --- When --------------------------------------------------------------------------------------


def test_a_batch_lingers_for_more_records() -> None:
    model = ProducerModel(linger_ms=10)
    model.produce(b"a")
    assert model.step() == 10
    model.produce(b"b")
    assert model.step(9) == 1
    assert not model.requests
    model.step(1)
    (request,) = model.requests
    assert request.batches[0].count == 2


def test_a_full_batch_does_not_linger() -> None:
    model = ProducerModel(linger_ms=10_000, batch_size=200)
    model.begin()
    for _ in range(5):
        model.produce(b"x" * 60)
    model.step()
    assert [request.batches[0].count for request in model.requests] == [2, 2]


@pytest.mark.parametrize("reason", ["flushing", "is_memory_exhausted"])
def test_nothing_lingers_while_somebody_waits(reason: str) -> None:
    model = ProducerModel(linger_ms=10_000)
    model.produce(b"a")
    setattr(model.sender, reason, 1)
    model.step()
    assert len(model.requests) == 1


def test_batches_of_one_node_share_a_request_up_to_its_size() -> None:
    model = ProducerModel(linger_ms=0, batch_size=100, max_request_size=400)
    for partition in range(5):
        model.produce(b"x" * 60, partition=partition)
    model.step()
    assert sorted(len(request.batches) for request in model.requests) == [2, 3]


def test_nodes_get_requests_of_their_own() -> None:
    model = ProducerModel(linger_ms=0)
    model.leaders["t", 1] = LEADER + 1
    model.produce(b"a")
    model.produce(b"b", partition=1)
    model.step()
    assert sorted(request.node_id for request in model.requests) == [LEADER, LEADER + 1]


def test_a_partition_without_a_leader_waits_and_others_do_not() -> None:
    model = ProducerModel(linger_ms=0)
    model.leaders["t", 0] = None
    model.produce(b"a")
    model.produce(b"b", partition=1)
    model.step()
    assert [batch.partition for request in model.requests for batch in request.batches] == [1]
    model.leaders["t", 0] = LEADER
    model.step()
    assert len(model.requests) == 2


def test_a_busy_node_is_looked_at_again_when_it_says() -> None:
    model = ProducerModel(linger_ms=0)
    model.produce(b"a")
    model.busy[LEADER] = 70
    assert model.step() == 70
    assert not model.requests


def test_five_batches_of_a_partition_are_in_flight_with_idempotence() -> None:
    model = ProducerModel(linger_ms=0)
    model.begin()
    model.produce_batches(b"a", b"b", b"c", b"d", b"e", b"f")
    assert stamps(model) == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)]
    model.answer()
    model.step()
    assert stamps(model)[-1] == (0, 6)


def test_the_first_batch_of_a_sequence_is_not_overtaken() -> None:
    model = ProducerModel(linger_ms=0)
    model.produce_batches(b"a", b"b", b"c")
    assert stamps(model) == [(0, 0)]
    model.answer(BatchAnswer(ERROR.NOT_LEADER_OR_FOLLOWER))
    model.settle()
    assert model.log().values == [b"a", b"b", b"c"]


def test_one_batch_of_a_partition_is_in_flight_without_idempotence() -> None:
    model = ProducerModel(linger_ms=0, enable_idempotence=False)
    model.produce_batches(b"a", b"b")
    assert stamps(model) == [(-1, -1)]
    model.settle()
    assert model.log().values == [b"a", b"b"]


def test_nothing_is_sent_without_an_identity() -> None:
    model = ProducerModel(linger_ms=0)
    model.transactions.identity = NO_IDENTITY
    model.produce(b"a")
    assert model.step() == model.settings.delivery_timeout_ms
    assert not model.requests
    model.transactions.initialized(ProducerIdentity(9, 2))
    model.step()
    assert stamps(model) == [(2, 0)]


def test_with_nothing_to_send_it_waits_for_an_event() -> None:
    assert ProducerModel().step() == NEVER


# --- Memory ------------------------------------------------------------------------------------


def test_memory_is_bounded_and_comes_back() -> None:
    model = ProducerModel(linger_ms=0, batch_size=1000, buffer_memory=2500)
    model.produce(b"a", partition=0)
    model.produce(b"b", partition=1)
    assert model.accumulator.new_batch("t", 2, 0, None, b"c", ()) is None
    model.settle()
    assert model.accumulator.used_bytes == 0
    assert model.accumulator.new_batch("t", 2, 0, None, b"c", ()) is not None


@pytest.mark.parametrize("setting", ["max_request_size", "buffer_memory"])
def test_a_record_larger_than_its_limit_is_refused(setting: str) -> None:
    model = ProducerModel(**{setting: 2000})
    with pytest.raises(RecordTooLargeError, match=f"{setting}=2000"):
        model.produce(b"x" * 2000)


def test_memory_of_split_and_failed_batches_comes_back() -> None:
    model = ProducerModel(linger_ms=0)
    model.produce(b"x" * 100)
    model.produce(b"y" * 100)
    model.step()
    model.answer(BatchAnswer(ERROR.MESSAGE_TOO_LARGE))
    model.step()
    model.answer(BatchAnswer(ERROR.INVALID_RECORD))
    model.settle()
    assert model.accumulator.used_bytes == 0


# --- Answers -----------------------------------------------------------------------------------


def test_offsets_come_back() -> None:
    model = ProducerModel(linger_ms=0)
    first, second = model.produce_batches(b"a", b"b")
    model.settle()
    assert (first.base_offset, second.base_offset) == (0, 1)


def test_what_may_pass_is_sent_again_after_the_backoff() -> None:
    model = ProducerModel(linger_ms=0)
    model.produce_batches(b"a")
    model.answer(BatchAnswer(ERROR.NOT_LEADER_OR_FOLLOWER))
    assert model.step() == 100
    model.step(100)
    model.answer(BatchAnswer(ERROR.NOT_ENOUGH_REPLICAS))
    assert model.step() == 200
    model.settle()
    assert model.log().values == [b"a"]


def test_what_will_not_pass_fails_at_once_and_the_rest_begins_a_new_epoch() -> None:
    model = ProducerModel(linger_ms=0)
    model.begin()
    first, _ = model.produce_batches(b"a", b"b")
    model.answer(BatchAnswer(ERROR.INVALID_RECORD, "record 0 of the batch: no key"))
    assert isinstance(first.failure, KafkaError)
    assert str(first.failure) == (
        "INVALID_RECORD: partition 0 of topic 't': record 0 of the batch: no key"
    )
    model.answer()  # OUT_OF_ORDER_SEQUENCE_NUMBER, for the first one is missing
    model.step(100)
    assert stamps(model) == [(1, 0)]
    model.settle()
    assert model.log().values == [b"first", b"b"]


def test_the_error_of_a_record_that_is_too_large_names_the_settings() -> None:
    model = ProducerModel(linger_ms=0)
    (batch,) = model.produce_batches(b"a")
    model.answer(BatchAnswer(ERROR.MESSAGE_TOO_LARGE))
    assert isinstance(batch.failure, KafkaError)
    assert batch.failure.code == ERROR.MESSAGE_TOO_LARGE
    assert "max.message.bytes" in str(batch.failure)


def test_a_batch_that_is_too_large_is_split_until_it_fits() -> None:
    model = ProducerModel(linger_ms=0)
    for number in range(4):
        model.produce(b"%d" % number * 100)
    model.step()
    model.answer(BatchAnswer(ERROR.MESSAGE_TOO_LARGE))
    model.settle()
    assert model.log().values == [b"%d" % number * 100 for number in range(4)]


def test_after_a_lost_connection_batches_are_sent_again_in_order_and_one_at_a_time() -> None:
    model = ProducerModel(linger_ms=0)
    model.produce_batches(b"a", b"b", b"c")
    model.disconnect()
    model.step(100)
    assert stamps(model) == [(0, 0)]
    model.produce(b"d")
    model.settle()
    assert model.log().values == [b"a", b"b", b"c", b"d"]


def test_answers_that_were_lost_do_not_double_records() -> None:
    model = ProducerModel(linger_ms=0)
    model.begin()
    batches = model.produce_batches(b"a", b"b", b"c")
    for request in model.requests:
        model.apply(request)
    model.disconnect()
    model.settle()
    assert model.log().values == [b"first", b"a", b"b", b"c"]
    assert [batch.base_offset for batch in batches] == [1, 2, 3]


def test_no_batch_gets_a_number_while_the_leader_could_forget_one_before_it() -> None:
    model = ProducerModel(linger_ms=0)
    model.begin()
    for value in (b"1", b"2", b"3", b"4", b"5"):
        model.produce_batches(value)
    model.apply(model.requests[0])
    model.answer(BatchAnswer(ERROR.REQUEST_TIMED_OUT))
    for _ in range(4):
        model.answer()
    (late,) = model.produce_batches(b"6")
    assert stamps(model) == []
    model.step(100)
    assert stamps(model) == [(0, 1)]
    model.answer()
    model.step()
    assert stamps(model) == [(0, 6)]
    model.settle()
    assert late.base_offset == 6
    assert model.log().values == [b"first", b"1", b"2", b"3", b"4", b"5", b"6"]


def test_a_late_answer_does_not_hide_that_later_batches_are_in_the_log() -> None:
    model = ProducerModel(linger_ms=0)
    model.begin()
    first, *_ = model.produce_batches(b"0", b"1", b"2")
    held = model.requests.pop(0)
    answers = model.apply(held)
    for _ in range(2):
        model.answer()
    model.sender.answered(first, *answers, model.now_ms)
    (lost,) = model.produce_batches(b"3")
    model.logs.clear()
    model.apply(held)  # it is all that the next leader has
    model.settle()
    assert model.log().values == [b"0", b"3"]
    assert lost.identity.epoch == 1


def test_retries_are_bounded_where_that_is_set() -> None:
    model = ProducerModel(linger_ms=0, retries=2)
    (batch,) = model.produce_batches(b"a")
    for _ in range(3):
        model.answer(BatchAnswer(ERROR.NOT_ENOUGH_REPLICAS))
        model.step(1000)
    assert not model.requests
    assert batch.failure is not None


# --- Epochs (KIP-360) --------------------------------------------------------------------------


@pytest.mark.parametrize("code", [ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER, ERROR.UNKNOWN_PRODUCER_ID])
def test_a_leader_that_lost_the_sequence_gets_it_from_its_beginning_in_a_new_epoch(code) -> None:
    model = ProducerModel(linger_ms=0)
    model.produce_batches(b"a")
    model.answer()
    model.produce_batches(b"b", b"c")
    model.answer(BatchAnswer(code))
    model.step(100)
    assert stamps(model) == [(0, 2)], "what is in flight must come back first"
    model.answer(BatchAnswer(ERROR.OUT_OF_ORDER_SEQUENCE_NUMBER))
    model.step(100)
    assert stamps(model) == [(1, 0)]
    model.settle()
    assert model.log().values == [b"a", b"b", b"c"]


def test_other_partitions_take_the_new_epoch_when_nothing_of_theirs_is_in_flight() -> None:
    model = ProducerModel(linger_ms=0)
    model.produce_batches(b"a")
    model.produce(b"x", partition=1)
    model.step()
    model.answer(BatchAnswer(ERROR.UNKNOWN_PRODUCER_ID))
    model.produce(b"y", partition=1)
    model.step()
    assert stamps(model) == [(0, 0)], "the second of partition 1 waits for the first"
    model.answer()
    model.step()
    assert stamps(model) == [(1, 0)]
    model.settle()
    assert model.log("t", 1).values == [b"x", b"y"]


def test_after_the_last_epoch_another_id_is_needed() -> None:
    model = ProducerModel(linger_ms=0)
    model.transactions.identity = ProducerIdentity(7, 0x7FFF)
    model.produce_batches(b"a")
    model.answer(BatchAnswer(ERROR.UNKNOWN_PRODUCER_ID))
    model.step(100)
    assert not model.requests
    assert model.transactions.needs_identity
    model.transactions.initialized(ProducerIdentity(8, 0))
    model.step()
    batch = RecordBatch(model.requests[0].data[0])
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (8, 0, 0)


# --- Time --------------------------------------------------------------------------------------


def test_a_batch_that_was_never_sent_expires_without_a_trace() -> None:
    model = ProducerModel(linger_ms=0, delivery_timeout_ms=1000)
    model.leaders["t", 0] = None
    (batch,) = model.produce_batches(b"a")
    assert model.step() == 1000
    model.step(1000)
    assert isinstance(batch.failure, DeliveryTimeoutError)
    model.leaders["t", 0] = LEADER
    model.produce_batches(b"b")
    assert stamps(model) == [(0, 0)]


def test_the_sender_looks_again_when_the_time_of_a_batch_in_flight_is_over() -> None:
    model = ProducerModel(linger_ms=0, delivery_timeout_ms=5_000)
    model.produce(b"a")
    assert model.step() == 5_000
    assert model.requests
    assert model.step(4_000) == 1_000
    model.step(1_000)
    assert model.failed


def test_a_batch_in_flight_expires_and_its_answer_is_too_late() -> None:
    model = ProducerModel(linger_ms=0, delivery_timeout_ms=1000)
    (batch,) = model.produce_batches(b"a")
    model.step(1000)
    assert isinstance(batch.failure, DeliveryTimeoutError)
    model.produce(b"b")
    model.step()
    assert len(model.requests) == 1, "nobody knows yet which sequence is the next"
    model.answer()
    model.step()
    assert stamps(model) == [(0, 1)]


def test_a_connection_that_is_lost_as_the_time_ends_is_told_as_that() -> None:
    model = ProducerModel(linger_ms=0, delivery_timeout_ms=1000)
    (batch,) = model.produce_batches(b"a")
    model.now_ms += 1000
    model.disconnect()
    assert isinstance(batch.failure, DeliveryTimeoutError)
    assert "within 1000 ms: " in str(batch.failure)


def test_after_an_outcome_that_stays_unknown_a_new_epoch_begins() -> None:
    model = ProducerModel(linger_ms=0, delivery_timeout_ms=1000)
    model.produce_batches(b"a")
    model.disconnect()
    model.leaders["t", 0] = None
    model.step(1000)
    model.leaders["t", 0] = LEADER
    model.produce_batches(b"b")
    assert stamps(model) == [(1, 0)]


# --- Faults ------------------------------------------------------------------------------------


# With this seed a batch was sent again behind five that came after it, so that no leader knew it.
@example(10577)
@given(st.integers(0, 1 << 32))
def test_under_faults_nothing_is_lost_doubled_or_reordered(seed: int) -> None:
    run = FaultyRun(seed)
    run.run()
    assert run.violations() == []


@given(st.integers(0, 1 << 32))
def test_nor_when_batches_expire(seed: int) -> None:
    run = FaultyRun(seed, delivery_timeout_ms=1500)
    run.run()
    assert run.violations() == []


@given(st.integers(0, 1 << 32))
def test_without_idempotence_records_may_be_there_twice_and_nothing_else(seed: int) -> None:
    run = FaultyRun(seed, enable_idempotence=False)
    run.run()
    assert [each for each in run.violations() if "lost" in each] == []

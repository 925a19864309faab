"""Producers that number their batches: repetitions, gaps, epochs, transactions."""

from __future__ import annotations

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.records import build_batch
from odradek.runtime.steps import run_at_once
from odradek.storage import AppendOrigin, Log

NOW_MS = 1_700_000_000_000
SEQUENCE_MAX = 2**31 - 1


@pytest.fixture
def produce(append):
    """Append `count` records of producer 1 from a sequence number on."""

    def produce_them(log: Log, sequence: int, count: int = 1, epoch: int = 0, **more):
        return append(
            log,
            *[b"v"] * count,
            producer_id=1,
            producer_epoch=epoch,
            base_sequence=sequence,
            **more,
        )

    return produce_them


def refusal(action) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        action()
    return refused.value.code


def test_a_repeated_batch_gets_the_first_ones_offsets_and_is_not_written(open_log, produce) -> None:
    log = open_log()
    produce(log, 0, count=3)
    first = produce(log, 3, count=2, timestamp=NOW_MS - 7)
    size = log.size
    again = produce(log, 3, count=2, timestamp=NOW_MS - 7)
    assert again.duplicate
    assert (again.first_offset, again.last_offset) == (first.first_offset, first.last_offset)
    assert again.log_append_time_ms == NOW_MS - 7  # as Kafka answers it
    assert (log.size, log.log_end_offset) == (size, 5)


def test_the_last_five_batches_are_recognised_and_no_more(open_log, produce) -> None:
    log = open_log()
    for sequence in range(6):
        produce(log, sequence)
    assert [produce(log, sequence).first_offset for sequence in range(1, 6)] == [1, 2, 3, 4, 5]
    assert refusal(lambda: produce(log, 0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_part_of_a_batch_is_no_repetition(open_log, produce) -> None:
    log = open_log()
    produce(log, 0, count=3)
    for sequence, count in ((0, 2), (1, 2), (0, 4)):
        code = refusal(lambda at=sequence, n=count: produce(log, at, count=n))
        assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("sequence", [2, 4, SEQUENCE_MAX])
def test_a_gap_is_refused_and_the_right_number_taken_after_it(open_log, produce, sequence) -> None:
    log = open_log()
    produce(log, 0, count=3)
    assert refusal(lambda: produce(log, sequence)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 3).first_offset == 3


def test_batches_staged_in_one_pass_must_follow_each_other(open_log, produce) -> None:
    log = open_log()
    produce(log, 0, flush=False)
    produce(log, 1, flush=False)
    assert refusal(lambda: produce(log, 3, flush=False)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    again = produce(log, 1, flush=False)
    assert (again.duplicate, again.first_offset) == (True, 1)
    log.flush_appends()
    assert log.log_end_offset == 2


def test_a_producer_nobody_knows_may_begin_anywhere(open_log, produce) -> None:
    log = open_log()
    assert produce(log, 1000).first_offset == 0
    assert refusal(lambda: produce(log, 0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequence_numbers_begin_again_after_the_largest(open_log, produce) -> None:
    log = open_log()
    produce(log, SEQUENCE_MAX - 1, count=2)
    produce(log, 0)
    assert produce(log, SEQUENCE_MAX - 1, count=2).duplicate


def test_a_batch_may_reach_across_the_largest_sequence_number(open_log, produce) -> None:
    log = open_log()
    produce(log, SEQUENCE_MAX, count=3)  # SEQUENCE_MAX, 0, 1
    assert produce(log, SEQUENCE_MAX, count=3).duplicate
    assert produce(log, 2).first_offset == 3


def test_a_newer_epoch_begins_at_sequence_zero(open_log, produce) -> None:
    log = open_log()
    produce(log, 0, count=3)
    assert refusal(lambda: produce(log, 3, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(log, 0, epoch=1).first_offset == 3
    assert produce(log, 1, epoch=1).first_offset == 4


def test_an_older_epoch_is_refused_even_for_a_repetition(open_log, produce) -> None:
    log = open_log()
    produce(log, 0, epoch=1)
    assert refusal(lambda: produce(log, 0, epoch=0)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_do_not_get_into_each_others_way(open_log, append) -> None:
    log = open_log()
    for producer_id in (1, 2, 2**62):
        append(log, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    for producer_id in (1, 2, 2**62):
        append(log, producer_id=producer_id, producer_epoch=0, base_sequence=1)
    assert log.log_end_offset == 6


def test_a_coordinators_batches_are_not_held_to_sequences(open_log) -> None:
    log = open_log()
    for _ in range(2):
        batch = build_batch([(b"k", b"v", NOW_MS, [])], producer_id=1, producer_epoch=0)
        log.append_as_leader(batch, leader_epoch=0, origin=AppendOrigin.COORDINATOR, now_ms=NOW_MS)
    log.flush_appends()
    assert log.log_end_offset == 2
    assert log.producers.get(1).last_sequence == -1


def test_a_silent_producer_is_forgotten(open_log, produce) -> None:
    log = open_log()
    produce(log, 5, timestamp=NOW_MS)
    run_at_once(log.producers.remove_expired(NOW_MS + 999, expiration_ms=1000))
    assert refusal(lambda: produce(log, 5, count=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    run_at_once(log.producers.remove_expired(NOW_MS + 1000, expiration_ms=1000))
    assert produce(log, 0).first_offset == 1


def end_transaction(log: Log, *, commit: bool, coordinator_epoch: int = 0, epoch: int = 0) -> None:
    key = b"\0\0" + (b"\0\x01" if commit else b"\0\0")
    value = b"\0\0" + coordinator_epoch.to_bytes(4, "big")
    marker = build_batch(
        [(key, value, NOW_MS, [])],
        control=True,
        transactional=True,
        producer_id=1,
        producer_epoch=epoch,
    )
    log.append_as_leader(marker, leader_epoch=0, origin=AppendOrigin.COORDINATOR, now_ms=NOW_MS)
    log.flush_appends()


def test_the_last_stable_offset_waits_for_open_transactions(open_log, produce, append) -> None:
    log = open_log()
    append(log, b"before")
    produce(log, 0, count=2, transactional=True)
    append(log, b"after")
    assert log.last_stable_offset == 1
    end_transaction(log, commit=True)
    assert log.last_stable_offset == 1  # its marker is not replicated, as far as is known
    log.high_watermark_moved(5)
    assert log.last_stable_offset == log.log_end_offset == 5
    produce(log, 2, transactional=True)
    assert log.last_stable_offset == 5


def test_a_staged_transaction_does_not_hold_the_last_stable_offset_yet(open_log, produce) -> None:
    log = open_log()
    produce(log, 0)
    produce(log, 1, transactional=True, flush=False)
    assert log.last_stable_offset == 1
    log.flush_appends()
    assert log.last_stable_offset == 1


def test_a_producer_in_a_transaction_may_not_write_outside_of_it(open_log, produce) -> None:
    log = open_log()
    produce(log, 0, transactional=True)
    assert refusal(lambda: produce(log, 1)) is ErrorCode.INVALID_TXN_STATE


def test_markers_of_an_older_coordinator_or_producer_epoch_are_refused(open_log, produce) -> None:
    log = open_log()
    produce(log, 0, transactional=True, epoch=1)
    end_transaction(log, commit=False, coordinator_epoch=5, epoch=1)
    assert (
        refusal(lambda: end_transaction(log, commit=True, coordinator_epoch=4, epoch=1))
        is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    )
    assert (
        refusal(lambda: end_transaction(log, commit=True, coordinator_epoch=5, epoch=0))
        is ErrorCode.INVALID_PRODUCER_EPOCH
    )


def test_after_a_marker_with_a_newer_epoch_sequences_begin_at_zero(open_log, produce) -> None:
    log = open_log()
    produce(log, 0, count=3, transactional=True)
    end_transaction(log, commit=False, epoch=1)
    code = refusal(lambda: produce(log, 3, epoch=1, transactional=True))
    assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    produce(log, 0, epoch=1, transactional=True)


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_a_restart_knows_producers_and_open_transactions(
    open_log, produce, clean_shutdown: bool
) -> None:
    log = open_log()
    produce(log, 0, count=3)
    produce(log, 3, count=2, transactional=True)
    if clean_shutdown:
        log.close()
    again = open_log(clean_shutdown=clean_shutdown)
    assert again.last_stable_offset == 3
    assert produce(again, 3, count=2, transactional=True).first_offset == 3
    assert (
        refusal(lambda: produce(again, 6, transactional=True))
        is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    end_transaction(again, commit=True)
    again.high_watermark_moved(6)
    assert again.last_stable_offset == 6

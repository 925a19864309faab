"""A transaction begins in a log only with the guard that its verification gave (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.transactions import NOW_MS, marker

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.records import build_batch
from odradek.runtime.steps import run_at_once
from odradek.storage import AppendOrigin, Log, LogAppendInfo
from odradek.storage.producer_state.verification_guard import NOT_REQUIRED, VerificationGuard

PRODUCER = 7
OpenLog = Callable[..., Log]


def write(
    log: Log,
    guard: VerificationGuard | None = None,
    *,
    sequence: int = 0,
    epoch: int = 0,
    transactional: bool = True,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> LogAppendInfo:
    data = build_batch(
        [(b"k", b"v", NOW_MS, ())],
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    info = log.append_as_leader(data, leader_epoch=0, now_ms=NOW_MS, origin=origin, guard=guard)
    log.flush_appends()
    return info


def end(log: Log, epoch: int = 0, transaction_version: int = 0) -> None:
    log.append_as_leader(
        marker(PRODUCER, commit=False, epoch=epoch),
        leader_epoch=0,
        now_ms=NOW_MS,
        origin=AppendOrigin.COORDINATOR,
        transaction_version=transaction_version,
    )
    log.flush_appends()


def verify(
    log: Log, *, sequence: int = 0, epoch: int = 0, bumps: bool = False, now_ms: int = NOW_MS
) -> VerificationGuard | None:
    return log.producers.start_verification(
        PRODUCER, epoch, sequence, supports_epoch_bump=bumps, now_ms=now_ms
    )


def refusal(action: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        action()
    return refused.value.code


def test_a_transaction_begins_only_with_its_guard(open_log: OpenLog) -> None:
    log = open_log()
    assert refusal(lambda: write(log)) is ErrorCode.INVALID_TXN_STATE
    guard = verify(log)
    assert refusal(lambda: write(log)) is ErrorCode.INVALID_TXN_STATE
    assert refusal(lambda: write(log, VerificationGuard())) is ErrorCode.INVALID_TXN_STATE
    assert write(log, guard).first_offset == 0


def test_what_follows_in_the_transaction_needs_none(open_log: OpenLog) -> None:
    log = open_log()
    write(log, verify(log))
    assert verify(log, sequence=1) is None
    assert write(log, sequence=1).first_offset == 1


def test_a_guard_from_before_a_marker_lets_nothing_in(open_log: OpenLog) -> None:
    log = open_log()
    late = verify(log)
    end(log)
    assert refusal(lambda: write(log, late)) is ErrorCode.INVALID_TXN_STATE
    current = verify(log)
    assert refusal(lambda: write(log, late)) is ErrorCode.INVALID_TXN_STATE
    assert write(log, current).first_offset == 1


def test_the_next_transaction_is_verified_again(open_log: OpenLog) -> None:
    log = open_log()
    first = verify(log)
    write(log, first)
    end(log)
    assert refusal(lambda: write(log, first, sequence=1)) is ErrorCode.INVALID_TXN_STATE
    assert write(log, verify(log, sequence=1), sequence=1).first_offset == 2


def test_a_transaction_of_another_epoch_is_not_the_open_one(open_log: OpenLog) -> None:
    log = open_log()
    write(log, verify(log))
    assert verify(log, epoch=1) is not None
    assert refusal(lambda: write(log, epoch=1)) is ErrorCode.INVALID_TXN_STATE


def test_a_repetition_is_recognised_after_its_transaction_ended(open_log: OpenLog) -> None:
    log = open_log()
    write(log, verify(log))
    end(log)
    again = write(log)
    assert (again.duplicate, again.first_offset, log.log_end_offset) == (True, 0, 2)


def test_coordinators_are_verified_too_and_leaders_batches_are_not(open_log: OpenLog) -> None:
    log = open_log()
    coordinator = AppendOrigin.COORDINATOR
    assert refusal(lambda: write(log, sequence=-1, origin=coordinator)) is (
        ErrorCode.INVALID_TXN_STATE
    )
    write(log, verify(log, sequence=-1), sequence=-1, origin=coordinator)
    follower = build_batch(
        [(b"k", b"v", NOW_MS, ())],
        base_offset=1,
        producer_id=8,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    log.append_as_follower(follower)
    log.flush_appends()
    assert log.log_end_offset == 2


def test_batches_outside_of_transactions_need_no_guard(open_log: OpenLog) -> None:
    log = open_log()
    assert write(log, transactional=False).first_offset == 0


def test_nobody_is_verified_where_that_is_switched_off(open_log: OpenLog) -> None:
    log = open_log()
    assert write(log, NOT_REQUIRED).first_offset == 0


def test_a_later_batch_does_not_go_before_one_that_was_earlier(open_log: OpenLog) -> None:
    log = open_log()
    guard = verify(log, sequence=4)
    assert verify(log, sequence=2) is guard
    assert refusal(lambda: write(log, guard, sequence=4)) is (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    write(log, guard, sequence=2)


def test_a_newer_epoch_forgets_what_the_older_one_requested(open_log: OpenLog) -> None:
    log = open_log()
    verify(log, sequence=0)
    guard = verify(log, sequence=3, epoch=1)
    write(log, guard, sequence=3, epoch=1)


def test_with_an_epoch_for_each_transaction_the_first_sequence_is_zero(open_log: OpenLog) -> None:
    log = open_log()
    guard = verify(log, sequence=3, bumps=True)
    assert refusal(lambda: write(log, guard, sequence=3)) is (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    write(log, verify(log, sequence=0, bumps=True))


def test_an_epoch_that_a_marker_has_raised_fences_what_was_verified_before(
    open_log: OpenLog,
) -> None:
    log = open_log()
    write(log, verify(log))
    end(log, epoch=1, transaction_version=2)
    stale = verify(log, sequence=1)
    assert refusal(lambda: write(log, stale, sequence=1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_verifications_of_which_nothing_came_expire(open_log: OpenLog) -> None:
    log = open_log()
    guard = verify(log, now_ms=NOW_MS)
    run_at_once(log.producers.remove_expired(NOW_MS + 999, 1000))
    assert len(log.producers.verifications) == 1
    run_at_once(log.producers.remove_expired(NOW_MS + 1000, 1000))
    assert len(log.producers.verifications) == 0
    assert refusal(lambda: write(log, guard)) is ErrorCode.INVALID_TXN_STATE

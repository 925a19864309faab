"""Up to where readers of committed records may see, and what they are told to leave out."""

from __future__ import annotations

import pytest
from support.transactions import TransactionalProducer, marker

from odradek.common.errors import ErrorCode, KafkaError
from odradek.protocol.records import build_batch
from odradek.storage import AppendOrigin
from odradek.storage.index.transaction_index import AbortedTxn

NOW_MS = 1_700_000_000_000


def test_without_transactions_everything_is_stable(open_log, append) -> None:
    log = open_log()
    append(log)
    append(log, producer_id=1, producer_epoch=0, base_sequence=0)
    assert log.last_stable_offset == 2
    assert not log.producers.unreplicated


def test_the_earliest_open_transaction_holds_it(open_log, append) -> None:
    log = open_log()
    append(log)
    first, second = TransactionalProducer(log, 1), TransactionalProducer(log, 2)
    first.write()
    second.write(b"a", b"b")
    first.write()
    assert log.last_stable_offset == 1
    first.end(commit=True)
    log.high_watermark_moved(log.log_end_offset)
    assert log.last_stable_offset == 2
    first.write()
    second.end(commit=False)
    log.high_watermark_moved(log.log_end_offset)
    assert log.last_stable_offset == 6  # the second transaction of the first producer


def test_an_ended_transaction_is_unstable_until_its_marker_is_replicated(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write(b"a", b"b")
    assert producer.end(commit=True) == 2
    for high_watermark in (0, 1, 2):
        log.high_watermark_moved(high_watermark)
        assert log.last_stable_offset == 0
    log.high_watermark_moved(3)
    assert log.last_stable_offset == 3


def test_ended_transactions_become_stable_as_their_markers_are_replicated(open_log) -> None:
    log = open_log()
    first, second = TransactionalProducer(log, 1), TransactionalProducer(log, 2)
    first.write()  # 0
    second.write()  # 1
    second.end(commit=True)  # 2
    first.end(commit=False)  # 3
    second.write()  # 4
    second.end(commit=True)  # 5
    seen = []
    for high_watermark in range(7):
        log.high_watermark_moved(high_watermark)
        seen.append(log.last_stable_offset)
    assert seen == [0, 0, 0, 0, 4, 4, 6]


def test_an_empty_transaction_changes_nothing(open_log, append) -> None:
    log = open_log()
    append(log)
    producer = TransactionalProducer(log, 1)
    producer.end(commit=False)
    assert log.last_stable_offset == 2
    assert log.producers.get(1).producer_epoch == 0
    assert log.aborted_transactions(0, 2) == []


def test_it_never_lies_before_the_log_start(open_log, append) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write(b"a", b"b", b"c")
    append(log)
    log.advance_log_start_offset(2)
    assert log.last_stable_offset == 2
    log.advance_log_start_offset(4)
    assert log.last_stable_offset == 4
    producer.end(commit=True)
    log.high_watermark_moved(5)
    assert log.last_stable_offset == 5


def test_unreplicated_transactions_before_the_log_start_are_forgotten(open_log, append) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write()
    producer.end(commit=False)
    append(log)
    log.advance_log_start_offset(2)
    assert log.last_stable_offset == log.log_end_offset == 3
    assert not log.producers.unreplicated


def test_producers_whose_batches_are_deleted_are_still_known(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write(transactional=False)
    producer.write(transactional=False)
    log.advance_log_start_offset(2)
    assert log.producers.get(1).last_sequence == 1
    producer.sequence = 1
    assert producer.write(transactional=False) == 1  # a repetition, recognised as one


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_producers_whose_batches_are_deleted_are_forgotten_with_a_restart(
    open_log, clean_shutdown: bool
) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write()
    producer.end(commit=True)
    log.advance_log_start_offset(2)
    if clean_shutdown:
        log.close()
    again = open_log(clean_shutdown=clean_shutdown, log_start_offset=2)
    assert again.producers.published == {}


def test_a_truncated_marker_leaves_its_transaction_open(open_log, append) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.write()
    append(log)
    producer.end(commit=True)
    log.high_watermark_moved(3)
    log.truncate_to(2)
    assert log.last_stable_offset == 0
    assert log.producers.open_transactions == {1: 0}


def test_a_truncated_transaction_never_was(open_log, append) -> None:
    log = open_log()
    append(log)
    producer = TransactionalProducer(log, 1)
    producer.write()
    log.truncate_to(1)
    assert log.last_stable_offset == log.log_end_offset == 1
    assert log.producers.published == {}


def test_nothing_is_unstable_in_a_log_that_began_anew(open_log) -> None:
    log = open_log()
    TransactionalProducer(log, 1).write()
    log.truncate_fully_and_start_at(10)
    assert log.last_stable_offset == 10
    assert log.producers.published == {}


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_an_open_transaction_survives_a_restart(open_log, append, clean_shutdown: bool) -> None:
    log = open_log(segment_bytes=150)
    producer = TransactionalProducer(log, 1)
    append(log)
    producer.write()
    for _ in range(5):
        append(log)
    if clean_shutdown:
        log.close()
    producer.log = again = open_log(segment_bytes=150, clean_shutdown=clean_shutdown)
    assert again.last_stable_offset == 1
    assert producer.end(commit=False) == 7
    assert again.aborted_transactions(0, 8) == [AbortedTxn(1, 1, 7, 8)]


def test_a_dropped_begin_holds_nothing(open_log, faulty_files, append) -> None:
    log = open_log(files=faulty_files)
    append(log)
    faulty_files.room_bytes = 0
    with pytest.raises(KafkaError):
        TransactionalProducer(log, 1).write()
    assert log.last_stable_offset == 1
    faulty_files.room_bytes = None
    append(log)
    assert log.last_stable_offset == 2


def test_a_snapshot_at_a_roll_knows_what_went_into_the_segment_before(open_log) -> None:
    log = open_log(segment_bytes=200)
    producer = TransactionalProducer(log, 1)
    for _ in range(4):
        producer.write(flush=False)  # two batches a segment, all in one flush
    log.flush_appends()
    assert len(log.segments) == 2
    again = open_log(segment_bytes=200)
    assert again.last_stable_offset == 0
    assert again.producers.get(1) == log.producers.get(1)
    assert again.producers.get(1).current_txn_first_offset == 0


def test_a_follower_learns_transactions_from_the_leaders_batches(open_log) -> None:
    log = open_log()

    def at(base_offset: int, batch: bytearray) -> bytearray:
        batch[:8] = base_offset.to_bytes(8, "big")
        return batch

    def write(base_offset: int, producer_id: int) -> bytearray:
        records = [(b"k", b"v", NOW_MS, [])]
        return build_batch(
            records,
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
            partition_leader_epoch=0,
        )

    log.append_as_follower(
        write(0, 1)
        + write(1, 2)
        + at(2, marker(1, commit=False))
        + write(3, 1)
        + at(4, marker(2, commit=True))
    )
    assert log.last_stable_offset == 0  # nothing is published yet
    log.flush_appends()
    assert log.last_stable_offset == 0
    log.high_watermark_moved(5)
    assert log.last_stable_offset == 3
    assert log.aborted_transactions(0, 5) == [AbortedTxn(1, 0, 2, 1)]


def test_a_marker_of_transaction_version_2_must_raise_the_epoch(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1, epoch=3)
    producer.write()

    def end(epoch: int) -> int:
        info = log.append_as_leader(
            marker(1, commit=True, epoch=epoch), leader_epoch=0, now_ms=NOW_MS,
            origin=AppendOrigin.COORDINATOR, transaction_version=2,
        )  # fmt: skip
        log.flush_appends()
        return info.first_offset

    with pytest.raises(KafkaError) as refused:
        end(3)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(4) == 1
    assert end(4) == 2  # the same marker once more: the transaction is over
    with pytest.raises(KafkaError):
        end(3)

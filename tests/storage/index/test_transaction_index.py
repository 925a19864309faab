"""The list of aborted transactions: its file, and how it follows the log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from support.transactions import TransactionalProducer

from odradek.protocol.records import iter_batches
from odradek.runtime.clock import ManualClock
from odradek.storage import (
    AppendOrigin,
    LogConfig,
    LogManager,
    StorageError,
    TopicPartition,
    load_log,
)
from odradek.storage.errors import CorruptIndexError
from odradek.storage.index.transaction_index import AbortedTxn, TransactionIndex
from odradek.storage.io.files import REAL_FILES

KAFKA_MADE = Path(__file__).parents[1] / "data" / "kafka-4.3.1" / "transactions-0"
"""A partition of Apache Kafka 4.3.1: 0 is outside of transactions, 1 and 2 are of producer 0 and
aborted by 3, 4 is of producer 1 and aborted by 8, 6 is of producer 2 and committed by 7. A second
segment begins at 3. Kafka's DumpLogSegments prints of its index what stands in `KAFKA_SAYS`."""

KAFKA_SAYS = [AbortedTxn(0, 1, 3, 4), AbortedTxn(1, 4, 8, 9)]
ORDERS = TopicPartition("orders", 0)
T = TopicPartition("transactions", 0)

NOW_MS = 1_700_000_000_000
FIRST = AbortedTxn(7, 100, 110, 105)
SECOND = AbortedTxn(8, 105, 120, 115)
THIRD = AbortedTxn(2**40, 115, 130, 131)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "00000000000000000100.txnindex")


@pytest.fixture
def index(path: str) -> TransactionIndex:
    made = TransactionIndex(REAL_FILES, path, 100)
    for aborted in (FIRST, SECOND, THIRD):
        made.append(aborted)
    return made


def reopen(index: TransactionIndex) -> TransactionIndex:
    return TransactionIndex(REAL_FILES, index.path, index.base_offset)


def test_there_is_no_file_before_the_first_entry(path: str) -> None:
    index = TransactionIndex(REAL_FILES, path, 100)
    assert index.read_all() == []
    index.flush()
    index.sync()
    assert not Path(path).exists()
    index.append(FIRST)
    index.flush()
    assert Path(path).stat().st_size == 34


def test_entries_are_found_again_after_a_flush(index: TransactionIndex) -> None:
    index.flush()
    again = reopen(index)
    assert again.read_all() == [FIRST, SECOND, THIRD]
    again.append(AbortedTxn(1, 131, 140, 141))
    again.flush()
    assert len(reopen(index)) == 4


def test_an_entry_must_end_after_the_one_before(index: TransactionIndex) -> None:
    with pytest.raises(ValueError, match="does not end after"):
        index.append(AbortedTxn(9, 120, 130, 131))


@pytest.mark.parametrize(
    ("fetch_offset", "upper", "expected", "is_complete"),
    [
        (0, 100, [], True),
        (0, 101, [FIRST], True),
        (100, 105, [FIRST], True),
        (100, 106, [FIRST, SECOND], True),
        (110, 116, [FIRST, SECOND, THIRD], True),
        (111, 115, [SECOND], True),
        (111, 200, [SECOND, THIRD], False),
        (121, 131, [THIRD], True),
        (130, 131, [THIRD], True),
        (131, 200, [], False),
    ],
)
def test_transactions_that_reach_into_a_range_are_collected(
    index: TransactionIndex, fetch_offset, upper, expected, is_complete
) -> None:
    assert index.collect(fetch_offset, upper) == (expected, is_complete)


@pytest.mark.parametrize(
    ("offset", "kept"), [(131, 3), (130, 2), (121, 2), (120, 1), (110, 0), (0, 0)]
)
@pytest.mark.parametrize("flushed", [True, False])
def test_truncation_drops_what_ends_at_the_offset_or_later(
    index: TransactionIndex, offset: int, kept: int, flushed: bool
) -> None:
    if flushed:
        index.flush()
    index.truncate_to(offset)
    assert index.read_all() == [FIRST, SECOND, THIRD][:kept]
    index.flush()
    assert reopen(index).read_all() == [FIRST, SECOND, THIRD][:kept]
    assert Path(index.path).exists() == (kept > 0)


def test_what_is_appended_after_a_truncation_replaces_what_was_there(
    index: TransactionIndex,
) -> None:
    index.flush()
    index.truncate_to(120)
    index.append(AbortedTxn(5, 111, 112, 113))
    index.flush()
    assert reopen(index).read_all() == [FIRST, AbortedTxn(5, 111, 112, 113)]


def test_a_reset_index_is_empty_on_the_disk_too(index: TransactionIndex) -> None:
    index.flush()
    again = reopen(index)
    again.reset()
    again.flush()
    assert not Path(index.path).exists()


def test_a_reset_index_takes_new_entries(index: TransactionIndex) -> None:
    index.flush()
    index.reset()
    index.append(SECOND)
    index.flush()
    assert reopen(index).read_all() == [SECOND]


@pytest.mark.parametrize(
    ("at", "byte"),
    [
        (1, 1),  # version
        (2, 0xFF),  # producer id
        (10, 0xFF),  # first offset: negative
        (16, 0x40),  # first offset: behind the last
        (18, 0xFF),  # last offset: negative
        (25, 0),  # last offset: before the segment
        (26, 0xFF),  # last stable offset
        (34 + 25, 110),  # ends with the one before
        (68 + 24, 1),  # ends behind the segment
    ],
)
def test_impossible_entries_are_reported(index: TransactionIndex, at: int, byte: int) -> None:
    index.flush()
    reopen(index).sanity_check(131)
    data = bytearray(Path(index.path).read_bytes())
    data[at] = byte
    Path(index.path).write_bytes(data)
    with pytest.raises(CorruptIndexError, match=r"0100\.txnindex"):
        reopen(index).sanity_check(131)


def test_a_torn_file_is_reported(index: TransactionIndex) -> None:
    index.flush()
    Path(index.path).write_bytes(Path(index.path).read_bytes()[:-1])
    with pytest.raises(CorruptIndexError, match="ends inside an entry"):
        reopen(index).sanity_check()


def test_a_write_that_failed_is_made_good_by_the_next(path: str, faulty_files) -> None:
    index = TransactionIndex(faulty_files, path, 100)
    index.append(FIRST)
    index.flush()
    index.append(SECOND)
    faulty_files.room_bytes = 20
    with pytest.raises(OSError, match="No space"):
        index.flush()
    faulty_files.room_bytes = None
    index.append(THIRD)
    index.flush()
    assert reopen(index).read_all() == [FIRST, SECOND, THIRD]


# --- in a log --------------------------------------------------------------------------------


def all_entries(log) -> list[AbortedTxn]:
    return [entry for segment in log.segments for entry in segment.transaction_index.read_all()]


def test_kafkas_index_is_read(tmp_path: Path) -> None:
    folder = shutil.copytree(KAFKA_MADE, tmp_path / "transactions-0")
    index = TransactionIndex(REAL_FILES, str(folder / f"{3:020d}.txnindex"), 3)
    index.sanity_check(9)
    assert index.read_all() == KAFKA_SAYS


@pytest.mark.parametrize(
    ("index_is", "clean_shutdown"),
    [
        ("there", True),
        ("torn", True),
        ("flipped", True),
        ("there", False),
        ("torn", False),
        ("flipped", False),
        ("missing", False),  # after a clean stop nobody can miss what most segments lack
    ],
)
def test_the_index_of_kafkas_segments_is_as_kafka_made_it(
    tmp_path: Path, index_is: str, clean_shutdown: bool
) -> None:
    folder = shutil.copytree(KAFKA_MADE, tmp_path / "transactions-0")
    path = folder / f"{3:020d}.txnindex"
    kafkas = path.read_bytes()
    if index_is == "missing":
        path.unlink()
    elif index_is != "there":
        path.write_bytes(kafkas[:-3] if index_is == "torn" else b"\xff" + kafkas[1:])
    log = load_log(str(folder), T, LogConfig(), clean_shutdown=clean_shutdown)
    assert log.aborted_transactions(0, 9) == KAFKA_SAYS
    log.close()
    assert path.read_bytes() == kafkas
    assert not (folder / f"{0:020d}.txnindex").exists()


def test_the_same_appends_make_the_files_that_kafka_made(tmp_path: Path) -> None:
    log = load_log(str(tmp_path / "transactions-0"), T, LogConfig())
    for name in sorted(KAFKA_MADE.glob("*.log")):
        data = name.read_bytes()
        for batch in iter_batches(data):
            sent = bytearray(data[batch.position : batch.position + batch.size_in_bytes])
            sent[:8] = bytes(8)
            origin = AppendOrigin.COORDINATOR if batch.is_control else AppendOrigin.CLIENT
            log.append_as_leader(sent, leader_epoch=0, origin=origin, now_ms=batch.max_timestamp)
    log.flush_appends()
    log.close()
    for suffix in ("*.log", "*.txnindex", "*03.snapshot"):
        for kafkas in KAFKA_MADE.glob(suffix):
            assert (tmp_path / "transactions-0" / kafkas.name).read_bytes() == kafkas.read_bytes()


@pytest.fixture
def one_aborted(open_log):
    """A log with an aborted transaction, 1 to 3, in one segment, and others around it."""
    log = open_log()
    TransactionalProducer(log, 2).write()
    producer = TransactionalProducer(log, 1)
    producer.write(b"a", b"b")
    producer.end(commit=False)
    TransactionalProducer(log, 3).write()
    return log


def test_an_abort_is_noted_with_the_last_stable_offset_of_its_time(one_aborted) -> None:
    assert all_entries(one_aborted) == [AbortedTxn(1, 1, 3, 0)]


def test_commits_and_empty_transactions_are_not_noted(open_log) -> None:
    log = open_log()
    producer = TransactionalProducer(log, 1)
    producer.end(commit=False)
    producer.write()
    producer.end(commit=True)
    producer.end(commit=False)
    assert all_entries(log) == []
    log.close()
    assert not list(Path(log.directory).glob("*.txnindex"))


def test_a_staged_abort_is_noted_with_the_flush(one_aborted) -> None:
    producer = TransactionalProducer(one_aborted, 9)
    producer.write()
    producer.end(commit=False, flush=False)
    assert len(all_entries(one_aborted)) == 1
    one_aborted.flush_appends()
    assert all_entries(one_aborted)[1:] == [AbortedTxn(9, 5, 6, 0)]


def test_an_abort_that_could_not_be_written_is_not_noted(open_log, faulty_files) -> None:
    log = open_log(files=faulty_files)
    producer = TransactionalProducer(log, 1)
    producer.write()
    faulty_files.room_bytes = 10
    with pytest.raises(StorageError):
        producer.end(commit=False)
    assert all_entries(log) == []
    assert log.last_stable_offset == 0
    faulty_files.room_bytes = None
    producer.end(commit=False)
    assert all_entries(log) == [AbortedTxn(1, 0, 1, 2)]


def test_aborts_go_into_the_segments_that_hold_their_markers(open_log) -> None:
    log = open_log(segment_bytes=150)
    producers = [TransactionalProducer(log, number) for number in range(4)]
    for producer in producers:
        producer.write(flush=False)
    for producer in producers:
        producer.end(commit=False, flush=False)
    log.flush_appends()
    assert len(log.segments) > 3
    for segment, following in zip(log.segments, [*log.segments][1:], strict=False):
        for aborted in segment.transaction_index.read_all():
            assert segment.base_offset <= aborted.last_offset < following.base_offset
    assert [aborted[:3] for aborted in all_entries(log)] == [(n, n, 4 + n) for n in range(4)]
    assert [aborted.last_stable_offset for aborted in all_entries(log)] == [1, 2, 3, 8]


def test_truncation_forgets_the_aborts_cut_off(one_aborted, open_log) -> None:
    one_aborted.truncate_to(3)
    assert one_aborted.aborted_transactions(0, 100) == []
    assert one_aborted.last_stable_offset == 0
    one_aborted.close()
    again = open_log(clean_shutdown=True)
    assert again.aborted_transactions(0, 100) == []
    producer = TransactionalProducer(again, 1)
    producer.end(commit=False)
    assert again.aborted_transactions(0, 100) == [AbortedTxn(1, 1, 3, 0)]


def test_a_transaction_may_be_aborted_segments_after_it_began(open_log, append) -> None:
    log = open_log(segment_bytes=150)
    producer = TransactionalProducer(log, 1)
    producer.write()
    for _ in range(20):
        append(log)
    producer.end(commit=False)
    for _ in range(3):
        append(log)
    assert len(log.segments) > 8
    read = log.read(0, 1)
    assert log.aborted_transactions_in(read) == [AbortedTxn(1, 0, 21, 22)]
    assert log.aborted_transactions_in(log.read(21, 1)) == [AbortedTxn(1, 0, 21, 22)]
    assert log.aborted_transactions_in(log.read(22, 1)) == []


@pytest.mark.parametrize("recovery_point", [0, 9, 1000])
def test_recovery_makes_the_index_again_from_where_transactions_began(
    open_log, append, recovery_point: int
) -> None:
    log = open_log(segment_bytes=150)
    first, second = TransactionalProducer(log, 1), TransactionalProducer(log, 2)
    first.write()
    for number in range(12):
        append(log)
        if number % 3 == 0:
            second.write()
            second.end(commit=number % 2 == 0)
    first.end(commit=False)
    expected = all_entries(log)
    assert len(expected) == 3
    for segment in log.segments:
        segment.flush_indexes()
    for path in Path(log.directory).glob("*.txnindex"):
        base_offset = int(path.stem)
        if base_offset >= recovery_point:
            path.write_bytes(b"")
    again = open_log(segment_bytes=150, recovery_point=min(recovery_point, log.log_end_offset))
    assert all_entries(again) == expected


def test_recovery_without_snapshots_reads_the_earlier_segments(open_log, append) -> None:
    log = open_log(segment_bytes=150)
    producer = TransactionalProducer(log, 1)
    producer.write()
    for _ in range(6):
        append(log)
    producer.end(commit=False)
    log.close()
    for path in Path(log.directory).iterdir():
        if path.suffix in (".snapshot", ".txnindex"):
            path.unlink()
    base_offset = log.segments.active.base_offset
    again = open_log(segment_bytes=150, recovery_point=base_offset)
    assert all_entries(again) == [AbortedTxn(1, 0, 7, 8)]


class ClosedLog(NamedTuple):
    """A log in four segments, the last two with aborted transactions, closed by its manager."""

    folder: Path
    expected: list[AbortedTxn]

    def reopened(self) -> list[AbortedTxn]:
        """What its transaction indexes name after the next start."""
        manager = _managed(self.folder.parent)
        entries = all_entries(manager.logs[ORDERS])
        manager.close()
        return entries


def _managed(data: Path) -> LogManager:
    manager = LogManager([str(data)], clock=ManualClock(NOW_MS))
    manager.load_logs()
    return manager


@pytest.fixture
def closed(tmp_path: Path, append) -> ClosedLog:
    data = tmp_path / "data"
    manager = _managed(data)
    log = manager.get_or_create_log(ORDERS, bytes(16), LogConfig(segment_bytes=300))
    producer = TransactionalProducer(log, 1)
    for commit in (True, True, False, False):
        producer.write(bytes(100))
        producer.end(commit=commit)
        append(log, bytes(100))
    expected = all_entries(log)
    assert len(expected) == 2
    assert len(list((data / "orders-0").glob("*.log"))) >= 4
    manager.close()
    return ClosedLog(data / "orders-0", expected)


LOSSES: dict[str, Callable[[list[Path]], object]] = {
    "all": lambda paths: [path.unlink() for path in paths],
    "the first": lambda paths: paths[0].unlink(),
    "the last": lambda paths: paths[-1].unlink(),
    "what is in it": lambda paths: paths[-1].write_bytes(b""),
}


@pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)
def test_a_transaction_index_lost_after_a_clean_stop_is_rebuilt(closed, lose, caplog) -> None:
    lose(sorted(closed.folder.glob("*.txnindex")))
    assert closed.reopened() == closed.expected
    assert any("rebuilding them" in message for message in caplog.messages)
    caplog.clear()
    assert closed.reopened() == closed.expected
    assert caplog.messages == []


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot", "epoch-checkpoint"])
def test_no_other_file_lost_after_a_clean_stop_costs_an_abort(closed, suffix: str) -> None:
    lost = [path for path in closed.folder.iterdir() if path.name.endswith(suffix)]
    assert lost
    for path in lost:
        path.unlink()
    assert closed.reopened() == closed.expected


def test_a_lost_tail_takes_its_aborts_along(one_aborted, open_log) -> None:
    one_aborted.close()
    path = Path(one_aborted.segments.active.log_path)
    marker_position = one_aborted.segments.active.position_of(3)
    path.write_bytes(path.read_bytes()[: marker_position + 20])
    again = open_log()
    assert again.log_end_offset == 3
    assert again.aborted_transactions(0, 100) == []


def test_deleted_segments_take_their_index_along(open_log) -> None:
    log = open_log(segment_bytes=100, file_delete_delay_ms=0)
    producer = TransactionalProducer(log, 1)
    for _ in range(3):
        producer.write()
        producer.end(commit=False)
    for segment in log.segments:
        segment.flush_indexes()
    assert len(list(Path(log.directory).glob("*.txnindex"))) == 3
    log.advance_log_start_offset(4)
    log.delete_old_segments(0, high_watermark=6)
    left = [int(path.stem) for path in Path(log.directory).glob("*.txnindex")]
    assert left == [5]
    assert log.aborted_transactions(4, 6) == [AbortedTxn(1, 4, 5, 6)]


def test_a_flush_waits_for_the_index_of_a_closed_segment(open_log) -> None:
    opened = []

    class WatchedFiles:
        def open(self, path: str, **arguments):
            opened.append(path)
            return REAL_FILES.open(path, **arguments)

        def __getattr__(self, name: str):
            return getattr(REAL_FILES, name)

    log = open_log(files=WatchedFiles())
    producer = TransactionalProducer(log, 1)
    producer.write()
    producer.end(commit=False)
    log.roll(NOW_MS)
    flush = log.start_flush()
    opened.clear()
    flush.run()
    assert log.segments.first.transaction_index.path in opened


def test_an_index_without_its_segment_is_removed(one_aborted, open_log) -> None:
    one_aborted.close()
    stray = Path(one_aborted.directory) / f"{77:020d}.txnindex"
    stray.write_bytes(b"")
    open_log(clean_shutdown=True)
    assert not stray.exists()


def test_a_segment_without_aborts_holds_no_index(open_log, append) -> None:
    log = open_log(segment_bytes=100)
    for _ in range(5):
        append(log)
    assert log.aborted_transactions_in(log.read(0, 1000)) == []
    assert not any(segment.has_transaction_index for segment in log.segments)

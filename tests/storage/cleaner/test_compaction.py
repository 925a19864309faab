"""What a round of the cleaner keeps, drops and rewrites."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest
from support.compaction import (
    ROOMY,
    clean,
    make_manager,
    map_of,
    read_batches,
    read_committed,
    read_records,
)
from support.transactions import marker

from odradek.common.errors import KafkaError
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import build_batch
from odradek.protocol.records.batch import DELETE_HORIZON_FLAG
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.storage import AppendOrigin, Log, LogConfig, TopicPartition, load_log
from odradek.storage.cleaner.cleaning_plan import CleaningPlan, SourceSegment, group_by_size
from odradek.storage.cleaner.offset_map import OffsetMapTooSmallError
from odradek.storage.cleaner.record_filter import delete_horizon_of
from odradek.storage.cleaner.throttler import CleanerThrottler
from odradek.storage.io.files import REAL_FILES
from odradek.storage.log.log_owner import NullLogOwner

TABLE = TopicPartition("table", 0)
NOW_MS = 1_700_000_000_000
RETENTION_MS = 60_000
CONFIG = LogConfig(
    cleanup_policy=frozenset({"compact"}),
    min_cleanable_dirty_ratio=0.0,
    delete_retention_ms=RETENTION_MS,
)

Pairs = list[tuple[bytes | None, bytes | None]]


class Table:
    """A compacted log on a real disk, and its cleaner."""

    def __init__(self, folder: Path, config: LogConfig = CONFIG) -> None:
        self.folder = str(folder / TABLE.folder_name)
        self.clock = ManualClock(NOW_MS)
        self.log: Log = load_log(self.folder, TABLE, config, now_ms=NOW_MS)
        self.manager = make_manager(self.log, self.clock)

    def append_without_key(self, *pairs: tuple[bytes | None, bytes | None]) -> None:
        """As it was possible before the topic was compacted."""
        config = self.log.config
        self.log.configure(config._replace(cleanup_policy=frozenset({"delete"})))
        self.append(*pairs)
        self.log.configure(config)

    def append(self, *pairs: tuple[bytes | None, bytes | None], **header) -> int:
        """One batch, each record a millisecond after the one before; returns its offset."""
        now_ms = self.clock.now_ms()
        origin = header.pop("origin", AppendOrigin.REPLICATION)
        records = [
            (key, value, now_ms + at, [("h", b"x")]) for at, (key, value) in enumerate(pairs)
        ]
        batch = build_batch(records, **header)
        info = self.log.append_as_leader(batch, leader_epoch=3, origin=origin, now_ms=now_ms)
        self.log.flush_appends()
        return info.first_offset

    def end_transaction(self, producer_id: int, *, commit: bool) -> int:
        info = self.log.append_as_leader(
            marker(producer_id, commit=commit, timestamp=self.clock.now_ms()),
            leader_epoch=3,
            origin=AppendOrigin.COORDINATOR,
            now_ms=self.clock.now_ms(),
        )
        self.log.flush_appends()
        self.log.high_watermark_moved(self.log.log_end_offset)
        return info.first_offset

    def roll(self) -> None:
        self.log.roll(self.clock.now_ms())

    def clean(self, settings=ROOMY):
        return clean(self.manager, self.clock, settings)

    def pairs(self) -> dict[int, tuple[bytes | None, bytes | None]]:
        return {record.offset: (record.key, record.value) for record in read_records(self.log)}

    def raw(self) -> bytes:
        return b"".join(Path(segment.log_path).read_bytes() for segment in self.log.segments)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path)


def test_the_latest_record_of_each_key_stays_at_its_offset(table: Table) -> None:
    table.append((b"a", b"1"), (b"b", b"1"))
    table.append((b"a", b"2"))
    table.roll()
    table.append((b"a", b"3"))
    table.roll()
    table.clean()
    assert table.pairs() == {1: (b"b", b"1"), 3: (b"a", b"3")}
    assert (table.log.log_start_offset, table.log.log_end_offset) == (0, 4)


def test_the_active_segment_is_neither_cleaned_nor_considered(table: Table) -> None:
    table.append((b"a", b"1"))
    table.append((b"a", b"2"))
    table.roll()
    table.append((b"a", b"3"))
    table.append((b"a", b"4"))
    table.clean()
    assert table.pairs() == {1: (b"a", b"2"), 2: (b"a", b"3"), 3: (b"a", b"4")}


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_that_loses_nothing_keeps_its_bytes(table: Table, compression: Compression) -> None:
    table.append((b"a", b"1" * 200), (b"b", b"1" * 200), compression=compression)
    table.roll()
    before = table.raw()
    assert table.clean() is not None
    assert table.raw() == before


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_that_loses_records_keeps_its_header(
    table: Table, compression: Compression
) -> None:
    table.append(
        (b"a", b"1"),
        (b"b", b"1"),
        (b"c", b"1"),
        compression=compression,
        producer_id=7,
        producer_epoch=2,
        base_sequence=10,
    )
    table.append((b"a", b"2"), (b"c", b"2"))
    table.roll()
    table.clean()
    batch = read_batches(table.log)[0]
    assert (batch.base_offset, batch.last_offset, batch.records_count) == (0, 2, 1)
    assert (batch.producer_id, batch.producer_epoch) == (7, 2)
    assert (batch.base_sequence, batch.last_sequence) == (10, 12)
    assert batch.partition_leader_epoch == 3
    assert batch.compression is compression
    assert batch.max_timestamp == NOW_MS + 1
    (record, *_) = read_records(table.log)
    assert record[:4] == (1, NOW_MS + 1, b"b", b"1")
    assert record.headers == [("h", b"x")]


def test_the_brokers_time_stays_on_what_is_left(tmp_path: Path) -> None:
    table = Table(tmp_path, CONFIG._replace(message_timestamp_type="LogAppendTime"))
    table.append((b"a", b"1"), (b"b", None), origin=AppendOrigin.CLIENT)
    table.clock.advance(500)
    table.append((b"a", b"2"), origin=AppendOrigin.CLIENT)
    table.roll()
    table.clean()
    assert [(r.offset, r.timestamp) for r in read_records(table.log)] == [
        (1, NOW_MS),
        (2, NOW_MS + 500),
    ]
    assert all(batch.uses_log_append_time for batch in read_batches(table.log))


def test_a_tombstone_stays_for_delete_retention_ms_from_its_first_cleaning_on(
    table: Table,
) -> None:
    table.append((b"a", b"1"), (b"b", b"1"))
    table.append((b"a", None), (b"c", b"1"))
    table.roll()
    table.clock.advance(1000)
    table.clean()
    assert table.pairs() == {1: (b"b", b"1"), 2: (b"a", None), 3: (b"c", b"1")}
    kept = read_batches(table.log)[1]
    assert kept.attributes & DELETE_HORIZON_FLAG
    assert delete_horizon_of(kept) == table.clock.now_ms() + RETENTION_MS
    assert [record.timestamp for record in read_records(table.log)] == [
        NOW_MS + 1,
        NOW_MS,
        NOW_MS + 1,
    ]

    table.clock.advance(RETENTION_MS - 1)
    table.append((b"d", b"1"))
    table.roll()
    table.clean()
    assert 2 in table.pairs()
    assert delete_horizon_of(read_batches(table.log)[1]) == delete_horizon_of(kept)

    table.clock.advance(1)
    table.append((b"d", b"2"))
    table.roll()
    table.clean()
    assert table.pairs() == {1: (b"b", b"1"), 3: (b"c", b"1"), 5: (b"d", b"2")}


def test_records_without_a_key_go(table: Table) -> None:
    table.append_without_key((None, b"1"), (b"a", b"1"))
    table.roll()
    cleaning = table.clean()
    assert table.pairs() == {1: (b"a", b"1")}
    assert cleaning.round.stats.records_after == 1


def test_what_was_aborted_goes_and_does_not_count_as_the_latest(table: Table) -> None:
    table.append((b"a", b"1"))
    mine = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    table.append((b"a", b"aborted"), base_sequence=0, **mine)
    table.end_transaction(7, commit=False)
    table.append((b"b", b"committed"), base_sequence=1, **mine)
    table.end_transaction(7, commit=True)
    table.roll()
    before = [record.offset for record in read_committed(table.log)]
    table.clean()
    assert table.pairs() == {0: (b"a", b"1"), 3: (b"b", b"committed")}
    assert [record.offset for record in read_committed(table.log)] == before == [0, 3]


def test_an_abort_marker_goes_a_while_after_the_last_of_its_records(table: Table) -> None:
    mine = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    table.append((b"a", b"1"), base_sequence=0, **mine)
    table.end_transaction(7, commit=False)
    table.append((b"a", b"2"), base_sequence=1, **mine)
    table.end_transaction(7, commit=True)

    def controls() -> list[int]:
        return [batch.base_offset for batch in read_batches(table.log) if batch.is_control]

    def clean_something_new() -> None:
        table.append((b"z", b""))
        table.roll()
        table.clean()

    table.roll()
    table.clean()  # the records go
    assert controls() == [1, 3]
    assert len(table.log.aborted_transactions(0, 10)) == 1
    clean_something_new()  # the marker gets its horizon
    assert controls() == [1, 3]
    assert table.log.aborted_transactions(0, 10) == []
    table.clock.advance(RETENTION_MS)
    clean_something_new()
    assert controls() == [3]


def test_the_last_batch_of_an_active_producer_stays_without_its_records(table: Table) -> None:
    table.append((b"a", b"1"), (b"b", b"1"), producer_id=7, producer_epoch=4, base_sequence=0)
    table.append((b"a", b"2"), (b"b", b"2"))
    table.roll()
    table.clean()
    first, second = read_batches(table.log)
    assert (first.base_offset, first.last_offset, first.records_count) == (0, 1, 0)
    assert (first.producer_epoch, first.last_sequence) == (4, 1)
    assert second.records_count == 2
    for snapshot in Path(table.folder).glob("*.snapshot"):
        snapshot.unlink()
    table.log = load_log(table.folder, TABLE, CONFIG, now_ms=NOW_MS)
    assert table.log.producers.published[7].last_sequence == 1


def test_the_last_marker_of_a_producer_without_records_stays_empty(table: Table) -> None:
    table.end_transaction(7, commit=True)
    for _ in range(2):  # once to mark it, once to empty it
        table.append((b"a", b"1"))
        table.roll()
        table.clean()
        table.clock.advance(RETENTION_MS)
    (marker_batch, _) = read_batches(table.log)
    assert (marker_batch.base_offset, marker_batch.records_count) == (0, 0)
    assert marker_batch.is_control
    assert (marker_batch.producer_id, marker_batch.producer_epoch) == (7, 0)


def test_the_batch_of_a_producer_long_silent_goes(table: Table) -> None:
    table.append((b"a", b"1"), producer_id=7, producer_epoch=4, base_sequence=0)
    table.append((b"a", b"2"))
    table.roll()
    run_at_once(table.log.producers.remove_expired(NOW_MS + 1000, 1000))
    table.clean()
    assert [batch.base_offset for batch in read_batches(table.log)] == [1]


def test_the_end_of_what_was_cleaned_stays_known(table: Table) -> None:
    table.append((b"a", b"1"))
    table.append_without_key((None, b"goes"))
    table.roll()
    table.clean()
    assert [batch.last_offset for batch in read_batches(table.log)] == [0, 1]
    assert table.pairs() == {0: (b"a", b"1")}


def test_a_full_map_ends_the_round_early_and_the_next_goes_on(table: Table) -> None:
    for number in range(4):
        table.append(*((b"%d" % key, b"%d" % number) for key in range(4)))
    table.roll()
    first = table.clean(map_of(4))
    assert first.round.end_offset == 4
    assert first.round.stats.map_utilization > 0.75
    assert run_at_once(table.manager.find_filthiest()).first_dirty_offset == 4
    assert len(table.pairs()) == 16
    ends = [table.clean(map_of(4)).round.end_offset for _ in range(3)]
    assert ends == [8, 12, 16]
    assert table.pairs() == {12 + key: (b"%d" % key, b"3") for key in range(4)}
    assert table.clean() is None


def test_small_neighbours_become_one_segment(table: Table) -> None:
    for number in range(6):
        table.append((b"%d" % number, b"1"))
        table.roll()
    assert len(table.log.segments) == 7
    table.clean()
    assert [segment.base_offset for segment in table.log.segments] == [0, 6]
    assert table.log.size == sum(segment.size for segment in table.log.segments)
    names = {path.name for path in Path(table.folder).iterdir()}
    assert names >= {"00000000000000000000.log", "00000000000000000006.snapshot"}
    assert not {name for name in names if "00000000000000000003" in name}


def test_lookups_find_what_is_left(tmp_path: Path) -> None:
    table = Table(tmp_path, CONFIG._replace(index_interval_bytes=50))
    for number in range(40):
        table.append((b"%d" % (number % 7), b"%d" % number))
        table.clock.advance(10)
        if number % 9 == 0:
            table.roll()
    table.roll()
    table.clean()
    for offset in range(41):
        left = [record.offset for record in read_records(table.log) if record.offset >= offset]
        got = table.log.read(offset, 1)
        found = len(got.records) > 0
        assert found == bool(left)
        requested = table.log.offset_for_timestamp(NOW_MS + 10 * offset)
        assert (requested.offset if requested else None) == (left[0] if left else None)


def test_a_round_begins_with_removing_what_another_left(table: Table) -> None:
    """A start would take such a `.swap` for a good one, or doubt the next because of `.cleaned`."""
    table.append((b"a", b"1"))
    table.append((b"a", b"2"))
    table.roll()
    left = [f"{7:020d}.log.swap", f"{7:020d}.index.cleaned"]
    for name in left:
        (Path(table.folder) / name).write_bytes(b"")
    candidate = run_at_once(table.manager.find_filthiest())
    pace = CleanerThrottler(table.clock, lambda _: None)
    table.manager.begin(candidate, ROOMY, pace).round.prepare()
    assert not {path.name for path in Path(table.folder).iterdir()} & set(left)


def test_slices_handed_out_before_stay_readable(table: Table) -> None:
    table.append((b"a", b"1"))
    table.append((b"a", b"2"))
    table.roll()
    slice_before = table.log.read(0, 1000).records
    data = table.raw()
    table.clean()
    assert slice_before.read() == data


def test_a_damaged_log_is_left_alone_and_the_broker_goes_on(table: Table) -> None:
    table.append((b"a", b"1"))
    table.append((b"a", b"2"))
    table.roll()
    path = Path(table.log.segments.first.log_path)
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    candidate = run_at_once(table.manager.find_filthiest())
    cleaning = table.manager.begin(candidate, ROOMY, CleanerThrottler(table.clock, lambda _: None))
    with pytest.raises(KafkaError, match="checksum") as failure:
        cleaning.round.prepare()
    table.manager.failed(cleaning, failure.value)
    assert run_at_once(table.manager.find_filthiest()) is None
    assert path.read_bytes() == data
    assert table.manager.uncleanable == {TABLE: table.log}


def test_settings_that_leave_no_room_for_a_key_are_reported_and_may_change(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    table.append((b"a", b"1"))
    table.append((b"a", b"2"))
    table.roll()
    settings = ROOMY._replace(dedupe_buffer_bytes=10)
    pace = CleanerThrottler(table.clock, lambda _: None)
    cleaning = table.manager.begin(run_at_once(table.manager.find_filthiest()), settings, pace)
    with pytest.raises(OffsetMapTooSmallError) as failure:
        cleaning.round.prepare()
    table.manager.failed(cleaning, failure.value)
    assert "log.cleaner.dedupe.buffer.size" in caplog.text
    assert table.clean() is not None


@pytest.mark.parametrize(("number", "is_told"), [(errno.EIO, True), (errno.ENOSPC, False)])
def test_a_failing_disk_is_reported_and_a_full_one_tried_again(
    table: Table, number: int, is_told: bool
) -> None:
    reported: list[str] = []

    class Owner(NullLogOwner):
        def disk_failed(self, path: str, error: OSError) -> None:
            reported.append(path)

    table.append((b"a", b"1"))
    table.append((b"a", b"2"))
    table.roll()
    table.log.owner = Owner()
    pace = CleanerThrottler(table.clock, lambda _: None)
    cleaning = table.manager.begin(run_at_once(table.manager.find_filthiest()), ROOMY, pace)
    table.manager.failed(cleaning, OSError(number, "it says"))
    assert reported == ([table.folder] if is_told else [])
    assert run_at_once(table.manager.find_filthiest()) is not None


def test_segments_are_grouped_by_their_bytes_and_the_reach_of_their_offsets(tmp_path: Path) -> None:
    def groups(*segments: tuple[int, int, int], segment_bytes: int = 100) -> list[list[int]]:
        sources = tuple(SourceSegment(*segment) for segment in segments)
        plan = CleaningPlan(
            REAL_FILES,
            str(tmp_path),
            "",
            sources,
            0,
            10,
            0,
            0,
            segment_bytes,
            1000,
            0,
            (),
            {},
            ROOMY,
        )
        grouped = group_by_size(plan, 2**62)
        return [[segment.base_offset for segment in group] for group in grouped]

    far = 2**31
    assert groups((0, 1, 60), (1, 2, 40), (2, 3, 1)) == [[0, 1], [2]]
    assert groups((0, 1, 600), (1, 2, 600)) == [[0], [1]]
    assert groups((0, far - 1, 1), (far - 1, far, 1)) == [[0, far - 1]]
    assert groups((0, far, 1), (far, far + 1, 1)) == [[0], [far]]
    assert groups((0, far, 1), (far, far + 9, 0)) == [[0, far]]
    for name in ("00000000000000000000.index", "00000000000000000001.index"):
        (tmp_path / name).write_bytes(bytes(501))
    assert groups((0, 1, 1), (1, 2, 1)) == [[0], [1]]


@pytest.mark.parametrize("compression", Compression)
def test_batches_larger_than_the_buffer_are_cleaned(table: Table, compression: Compression) -> None:
    source = random.Random(1)
    values = [source.randbytes(2000).hex().encode() for _ in range(60)]
    table.append(*((b"%d" % at, value) for at, value in enumerate(values)), compression=compression)
    table.append((b"0", b"new"))
    table.roll()
    table.clean()
    assert table.pairs() == {
        **{at: (b"%d" % at, value) for at, value in enumerate(values) if at},
        60: (b"0", b"new"),
    }

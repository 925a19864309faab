"""`odradek-log` without a Spark: rows of log folders against the records they were made of."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="the data sources are classes of PySpark's")

from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import RecordBatch, build_batch, iter_records
from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.kafka_source.filters import PushedFilters
from odradek.spark_connector.log_source.options import columns_of, log_options
from odradek.spark_connector.log_source.planning import planned_slices
from odradek.spark_connector.log_source.reader import LogReader
from odradek.storage.index.offset_index import ENTRY as OFFSET_ENTRY
from odradek.storage.index.time_index import ENTRY as TIME_ENTRY

Row = dict[str, Any]

START_MS = 1_370_088_000_000

RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=300),
        st.integers(0, 2**42),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=20)), max_size=3),
    ),
    min_size=1,
    max_size=40,
)


def rows_of(path: Path | Sequence[Path], **options: str) -> list[Row]:
    """The rows of a table, as the tasks give them one after another."""
    paths = [path] if isinstance(path, Path) else list(path)
    given = {"paths": str([str(each) for each in paths]).replace("'", '"')} | {
        name.replace("__", "."): value for name, value in options.items()
    }
    reader = LogReader(log_options(given), columns_of(given))
    return [row for batch in batches_read(reader) for row in batch.to_pylist()]


def batches_read(reader: LogReader) -> Iterator[Any]:
    for part in reader.partitions():
        yield from reader.read(part)


def partition_folder(root: Path, topic: str = "flights", partition: int = 0) -> Path:
    folder = root / f"{topic}-{partition}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_segment(
    folder: Path,
    batches: Sequence[bytes | bytearray],
    *,
    base_offset: int = 0,
    indexed: bool = True,
) -> Path:
    """A segment's file, and its indexes with an entry for each batch."""
    path = folder / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(batches))
    if indexed:
        offsets, times, position, latest = b"", b"", 0, -1
        for number, data in enumerate(batches):
            batch = RecordBatch(data)
            if number:
                offsets += OFFSET_ENTRY.pack(batch.last_offset - base_offset, position)
            if batch.max_timestamp > latest:
                latest = batch.max_timestamp
                times += TIME_ENTRY.pack(latest, batch.last_offset - base_offset)
            position += len(data)
        path.with_suffix(".index").write_bytes(offsets)
        path.with_suffix(".timeindex").write_bytes(times)
    return path


def batches_of(count: int, per_batch: int = 10, first: int = 0) -> list[bytearray]:
    """Batches of records a second apart, each with its number as its value."""
    return [
        build_batch(
            [
                (b"key", b"%05d" % number, START_MS + number * 1000, [])
                for number in range(base, base + per_batch)
            ],
            base_offset=base,
        )
        for base in range(first, first + count * per_batch, per_batch)
    ]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.tuples(RECORDS, st.sampled_from(list(Compression))), min_size=1, max_size=4))
def test_every_field_is_what_the_record_decoder_reads(tmp_path: Path, given: Any) -> None:
    batches = []
    base_offset = 0
    for records, codec in given:
        batches.append(build_batch(records, base_offset=base_offset, compression=codec))
        base_offset += len(records)
    folder = partition_folder(tmp_path)
    write_segment(folder, batches)
    found = [
        (row["offset"], row["key"], row["value"], row["headers"])
        for row in rows_of(tmp_path, includeHeaders="true")
    ]
    expected = [
        (
            record.offset,
            record.key,
            record.value,
            [{"key": name, "value": value} for name, value in record.headers] or None,
        )
        for data in batches
        for record in iter_records(RecordBatch(data))
    ]
    assert found == expected
    times = [row["timestamp"].timestamp() * 1000 for row in rows_of(tmp_path)]
    assert [round(each) for each in times] == [
        record.timestamp for data in batches for record in iter_records(RecordBatch(data))
    ]


def test_many_batches_of_one_form_are_read_as_those_of_many_forms(tmp_path: Path) -> None:
    alike = batches_of(300, per_batch=20)
    write_segment(partition_folder(tmp_path), alike)
    values = [int(row["value"]) for row in rows_of(tmp_path)]
    assert values == list(range(6000))


@pytest.mark.parametrize("others", [0, 1])
def test_a_batch_that_the_cleaner_emptied_has_no_rows(tmp_path: Path, others: int) -> None:
    # Kafka's DefaultRecordBatch.writeEmptyHeader: the last batch of a producer, offsets 5 to 8.
    fields = struct.pack(">hiqqqhii", 0, 3, 0, START_MS, 7, 0, 0, 0)
    empty = struct.pack(">qiibI", 5, 49, 0, 2, crc32c(fields)) + fields
    write_segment(partition_folder(tmp_path), [empty, *batches_of(others, first=9)])
    found = rows_of(tmp_path, includeHeaders="true")
    assert [row["offset"] for row in found] == list(range(9, 9 + 10 * others))


def test_slices_of_a_segment_hold_each_record_once(tmp_path: Path) -> None:
    batches = batches_of(50)
    write_segment(partition_folder(tmp_path), batches)
    options = {"path": str(tmp_path), "maxBytesPerPartition": str(5 * len(batches[0]))}
    slices = planned_slices(log_options(options), PushedFilters())
    assert len(slices) >= 8
    assert {each.end_position for each in slices[:-1]} == {
        each.start_position for each in slices[1:]
    }
    values = [int(row["value"]) for row in rows_of(tmp_path, maxBytesPerPartition="2000")]
    assert values == list(range(500))


@pytest.mark.parametrize("indexed", [True, False])
def test_offsets_and_times_cut_rows_exactly(tmp_path: Path, indexed: bool) -> None:
    folder = partition_folder(tmp_path)
    write_segment(folder, batches_of(20), indexed=indexed)
    write_segment(folder, batches_of(20, first=200), base_offset=200, indexed=indexed)
    by_offset = rows_of(tmp_path, startingOffsets="123", endingOffsets='{"flights": {"0": 257}}')
    assert [row["offset"] for row in by_offset] == list(range(123, 257))
    by_time = rows_of(
        tmp_path,
        startingTimestamp=str(START_MS + 215_000),
        endingTimestamp=str(START_MS + 305_001),
    )
    assert [row["offset"] for row in by_time] == list(range(215, 306))


def test_indexes_spare_reading_what_is_not_requested(tmp_path: Path) -> None:
    folder = partition_folder(tmp_path)
    write_segment(folder, batches_of(20))
    write_segment(folder, batches_of(20, first=200), base_offset=200)
    whole = (folder / f"{200:020d}.log").stat().st_size

    def planned(**options: str) -> list[tuple[int, int, int]]:
        slices = planned_slices(log_options({"path": str(tmp_path), **options}), PushedFilters())
        return [(each.segment, each.start_position, each.end_position) for each in slices]

    each = whole // 20
    assert planned(startingOffsets="305", endingOffsets="315") == [(200, 9 * each, 12 * each)]
    late = planned(startingTimestamp=str(START_MS + 350_000))
    assert late == [(200, 14 * each, whole)]


def test_out_of_order_times_lose_no_record(tmp_path: Path) -> None:
    times = [5, 1, 9, 2, 8, 3]
    batches = [
        build_batch([(None, b"%d" % number, START_MS + time * 1000, [])], base_offset=number)
        for number, time in enumerate(times)
    ]
    write_segment(partition_folder(tmp_path), batches)
    rows = rows_of(
        tmp_path,
        startingTimestamp=str(START_MS + 2000),
        endingTimestamp=str(START_MS + 9000),
    )
    assert [row["offset"] for row in rows] == [0, 3, 4, 5]


def test_an_index_that_lies_is_done_without(tmp_path: Path) -> None:
    path = write_segment(partition_folder(tmp_path), batches_of(20))
    path.with_suffix(".index").write_bytes(OFFSET_ENTRY.pack(19, 7) + OFFSET_ENTRY.pack(29, 3))
    rows = rows_of(tmp_path, startingOffsets="150", maxBytesPerPartition="100")
    assert [row["offset"] for row in rows] == list(range(150, 200))


def test_folders_are_distinguished_when_several_are_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_segment(partition_folder(tmp_path / name), batches_of(1))
    rows = rows_of([tmp_path / "one", tmp_path / "two"])
    assert [row["folder"] for row in rows] == [str(tmp_path / "one")] * 10 + [
        str(tmp_path / "two")
    ] * 10
    assert "folder" not in rows_of(tmp_path / "one")[0]
    matching = rows_of(tmp_path / "*")
    assert len(matching) == 20


def test_one_partition_may_be_read_by_its_own_folder(tmp_path: Path) -> None:
    write_segment(partition_folder(tmp_path, "a-b", 3), batches_of(1))
    write_segment(partition_folder(tmp_path, "other", 0), batches_of(1))
    rows = rows_of(tmp_path / "a-b-3")
    assert {(row["topic"], row["partition"]) for row in rows} == {("a-b", 3)}
    chosen = rows_of(tmp_path, subscribePattern="oth.*")
    assert {row["topic"] for row in chosen} == {"other"}


def test_records_below_the_log_start_are_not_served_but_can_be_read(tmp_path: Path) -> None:
    write_segment(partition_folder(tmp_path), batches_of(2))
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nflights 0 4\n")
    assert rows_of(tmp_path)[0]["offset"] == 4
    assert rows_of(tmp_path, startingOffsets="0")[0]["offset"] == 0


def test_the_high_watermark_may_be_the_end(tmp_path: Path) -> None:
    write_segment(partition_folder(tmp_path), batches_of(2))
    with pytest.raises(SparkConnectorError, match="no high watermark of flights-0"):
        rows_of(tmp_path, endingOffsets="highWatermark")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nflights 0 17\n")
    assert rows_of(tmp_path, endingOffsets="highWatermark")[-1]["offset"] == 16


# --- Transactions ----------------------------------------------------------------------------

COMMIT_KEY, ABORT_KEY = b"\0\0\0\1", b"\0\0\0\0"
MARKER_VALUE = b"\0\0\0\0\0\0"


def transactional(base_offset: int, producer_id: int, count: int = 2) -> bytearray:
    records = [(None, b"%d" % (base_offset + n), START_MS, []) for n in range(count)]
    return build_batch(
        records,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def marker(base_offset: int, producer_id: int, key: bytes) -> bytearray:
    return build_batch(
        [(key, MARKER_VALUE, START_MS, [])],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        transactional=True,
        control=True,
    )


@pytest.fixture
def transactions(tmp_path: Path) -> Path:
    """Producer 1 aborts 0-1 and commits 5-6, producer 2 commits 2-3, producer 3 has not ended."""
    write_segment(
        partition_folder(tmp_path),
        [
            transactional(0, 1),
            transactional(2, 2),
            marker(4, 1, ABORT_KEY),
            transactional(5, 1),
            marker(7, 2, COMMIT_KEY),
            marker(8, 1, COMMIT_KEY),
            transactional(9, 3),
            transactional(11, 1),
            marker(13, 1, COMMIT_KEY),
        ],
    )
    return tmp_path


def test_read_committed_leaves_out_what_was_aborted_or_is_open(transactions: Path) -> None:
    rows = rows_of(transactions, kafka__isolation__level="read_committed")
    assert [row["offset"] for row in rows] == [2, 3, 5, 6]


def test_uncommitted_rows_are_all_but_the_markers(transactions: Path) -> None:
    offsets = [row["offset"] for row in rows_of(transactions)]
    assert offsets == [0, 1, 2, 3, 5, 6, 9, 10, 11, 12]
    rows = rows_of(transactions, includeControl="true", columns="offset,isControl,producerId")
    assert [row["offset"] for row in rows] == list(range(14))
    assert {row["offset"]: row["producerId"] for row in rows if row["isControl"]} == {
        4: 1,
        7: 2,
        8: 1,
        13: 1,
    }


# --- Other tables ----------------------------------------------------------------------------


def test_batches_are_identified_by_their_headers(tmp_path: Path) -> None:
    batches = batches_of(3)
    write_segment(partition_folder(tmp_path), batches)
    rows = rows_of(tmp_path, table="batches")
    assert [(row["baseOffset"], row["lastOffset"], row["count"]) for row in rows] == [
        (0, 9, 10),
        (10, 19, 10),
        (20, 29, 10),
    ]
    assert [row["position"] for row in rows] == [0, len(batches[0]), 2 * len(batches[0])]
    assert [row["crc"] for row in rows] == [RecordBatch(data).crc for data in batches]


def test_index_entries_are_those_of_the_files(tmp_path: Path) -> None:
    batches = batches_of(3)
    write_segment(partition_folder(tmp_path), batches)
    rows = rows_of(tmp_path, table="indexes")
    by_offset = [(row["offset"], row["position"]) for row in rows if row["index"] == "offset"]
    assert by_offset == [(19, len(batches[0])), (29, 2 * len(batches[0]))]
    by_time = [(row["offset"], row["timestamp"]) for row in rows if row["index"] == "time"]
    assert [offset for offset, _ in by_time] == [9, 19, 29]


# --- Damage ----------------------------------------------------------------------------------


def damaged_segment(tmp_path: Path) -> Path:
    batches = batches_of(4)
    batches[1][-1] ^= 0xFF
    return write_segment(partition_folder(tmp_path), batches)


def test_damage_is_reported_with_file_and_position(tmp_path: Path) -> None:
    path = damaged_segment(tmp_path)
    position = len(batches_of(1)[0])
    with pytest.raises(SparkConnectorError, match=f"{path} is damaged at {position}: its checksum"):
        rows_of(tmp_path)


def test_damage_may_be_left_out(tmp_path: Path) -> None:
    damaged_segment(tmp_path)
    rows = rows_of(tmp_path, mode="DROPMALFORMED")
    assert [row["offset"] for row in rows] == [*range(10), *range(20, 40)]


@pytest.mark.parametrize("tail", [b"\0" * 500, b"\0" * 20, bytes(batches_of(1, first=30)[0])[:-1]])
def test_what_a_crash_leaves_at_a_logs_end_is_no_damage(tmp_path: Path, tail: bytes) -> None:
    write_segment(partition_folder(tmp_path), [*batches_of(3), tail], indexed=False)
    assert len(rows_of(tmp_path)) == 30


def test_what_is_not_whole_inside_a_log_is_damage(tmp_path: Path) -> None:
    folder = partition_folder(tmp_path)
    write_segment(folder, [*batches_of(3), bytes(batches_of(1, first=30)[0])[:-1]], indexed=False)
    write_segment(folder, batches_of(1, first=40), base_offset=40)
    with pytest.raises(SparkConnectorError, match="go beyond the end"):
        rows_of(tmp_path)


def mutations() -> Iterator[bytearray]:
    """A batch with one byte changed, at each place behind what says how long it is."""
    whole = build_batch([(b"k", b"v" * 5, START_MS, [("h", b"x")])] * 3)
    for place in range(12, len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        yield changed


def test_a_damaged_batch_is_refused_or_read_but_never_another_error(tmp_path: Path) -> None:
    folder = partition_folder(tmp_path)
    options = {"path": str(tmp_path), "includeHeaders": "true", "kafka.check.crcs": "false"}
    refused = 0
    for changed in mutations():
        write_segment(folder, [changed, *batches_of(1, first=10)], indexed=False)
        reader = LogReader(log_options(options), columns_of(options))
        try:
            list(batches_read(reader))
        except SparkConnectorError:
            refused += 1
    assert refused > 20


def test_a_time_beyond_what_spark_can_hold_is_the_last_it_can(tmp_path: Path) -> None:
    batch = build_batch([(None, b"x", 2**62, [])])
    write_segment(partition_folder(tmp_path), [batch])
    options = {"path": str(tmp_path), "columns": "timestamp"}
    reader = LogReader(log_options(options), columns_of(options))
    (found,) = batches_read(reader)
    assert found.column("timestamp").cast("int64").to_pylist() == [(2**63 - 1) // 1000 * 1000]


# --- Options ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("table", "rows"),
        ("startingOffsets", "latest"),
        ("endingOffsets", "earliest"),
        ("columns", "offset,nothing"),
        ("columns", ","),
        ("mode", "PERMISSIVE"),
        ("maxBytesPerPartition", "0"),
        ("kafka.isolation.level", "dirty"),
    ],
)
def test_an_impossible_value_is_reported_with_its_option(
    tmp_path: Path, option: str, value: str
) -> None:
    with pytest.raises(SparkConnectorError, match=f"'{option}'"):
        rows_of(tmp_path, **{option: value})


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SparkConnectorError, match="'path'"):
        rows_of(tmp_path / "missing")
    with pytest.raises(SparkConnectorError, match="'path'"):
        log_options({})

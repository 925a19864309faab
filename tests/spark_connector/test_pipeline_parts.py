"""Parts of the pipelines that need no Spark."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from odradek.spark_connector import SparkConnectorError
from odradek.spark_connector.pipelines import AuditFault, AuditReport, AuditSettings, TopicSource
from odradek.spark_connector.pipelines.archive.files import ArchiveFolder, noted_partitions
from odradek.spark_connector.pipelines.audit.gaps import OffsetSpan, holes
from odradek.spark_connector.pipelines.audit.html import as_html
from odradek.spark_connector.pipelines.audit.report import Bar, PartitionAudit, Plot
from odradek.spark_connector.pipelines.partitioners import by_crc32, by_murmur2, murmur2
from odradek.spark_connector.pipelines.progress import PipelineProgress, first_line
from odradek.spark_connector.pipelines.record_fields import require_field
from odradek.spark_connector.pipelines.replicas.batch_headers import BatchHeader

# --- Offsets without a record ------------------------------------------------------------------


def plain(base: int, last: int) -> BatchHeader:
    return BatchHeader(base, last, is_control=False, is_transactional=False)


def transactional(base: int, last: int) -> BatchHeader:
    return BatchHeader(base, last, is_control=False, is_transactional=True)


def marker(offset: int) -> BatchHeader:
    return BatchHeader(offset, offset, is_control=True, is_transactional=True)


@pytest.mark.parametrize(
    ("runs", "batches", "found"),
    [
        ([(5, 6)], [plain(0, 4), marker(5), plain(6, 9)], []),
        ([(5, 6)], [plain(0, 4), plain(6, 9)], [(5, 6)]),
        ([(5, 9)], [transactional(5, 7), marker(8)], []),
        ([(5, 10)], [transactional(5, 7), marker(9)], [(8, 9)]),
        ([(5, 8)], [plain(0, 9)], [(5, 8)]),
        ([(2, 3), (5, 6), (8, 10)], [marker(2), plain(3, 4), marker(8)], [(5, 6), (9, 10)]),
        ([(2, 5)], [], [(2, 5)]),
        ([(0, 3)], [plain(10, 12)], [(0, 3)]),
    ],
)
def test_what_no_batch_explains_is_a_hole(
    runs: list[tuple[int, int]], batches: list[BatchHeader], found: list[tuple[int, int]]
) -> None:
    holed = holes([OffsetSpan(*run) for run in runs], batches, compacted=False)
    assert [tuple(hole) for hole in holed] == found


def test_a_compacted_topic_has_no_holes() -> None:
    assert list(holes([OffsetSpan(2, 5)], [], compacted=True)) == []


# --- Partitioners ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "number"),
    [  # from Kafka's own UtilsTest
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    ],
)
def test_murmur2_is_kafkas(key: str, number: int) -> None:
    assert murmur2(key.encode()) == number % 2**32


def test_partitions_are_those_of_the_hashes_without_their_sign() -> None:
    from kafka.partitioner.default import murmur2 as kafka_pythons

    for number in range(200):
        key = b"k" * (number % 9) + str(number).encode()
        assert by_murmur2(key, 7) == (kafka_pythons(key) & 0x7FFFFFFF) % 7
    assert by_crc32(b"123456789", 1000) == 0xCBF43926 % 1000  # the check value of CRC-32


# --- The folder of an archive ------------------------------------------------------------------


def archive_at(folder: Path) -> ArchiveFolder:
    archive = ArchiveFolder.at(str(folder), str(folder / "_checkpoint"))
    assert archive is not None
    return archive


def logged(folder: Path, name: str, files: list[str]) -> None:
    log = folder / "_spark_metadata"
    log.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": f"file://{folder}/topic=a/date=b/{file}"}) for file in files]
    (log / name).write_text("\n".join(["v1", *lines]))


def test_only_files_of_the_log_are_kept(tmp_path: Path) -> None:
    data = tmp_path / "topic=a" / "date=b"
    data.mkdir(parents=True)
    for name in ("part-1.parquet", "part-2.parquet", "part-3.parquet", "mine.txt"):
        (data / name).write_bytes(b"")
    logged(tmp_path, "9.compact", ["part-1.parquet"])
    logged(tmp_path, "10", ["part-3.parquet"])
    assert archive_at(tmp_path).remove_uncommitted() == 1
    assert sorted(path.name for path in data.iterdir()) == [
        "mine.txt",
        "part-1.parquet",
        "part-3.parquet",
    ]


def test_nothing_is_removed_where_there_is_no_log_or_an_unknown_one(tmp_path: Path) -> None:
    data = tmp_path / "topic=a" / "date=b"
    data.mkdir(parents=True)
    (data / "part-1.parquet").write_bytes(b"")
    assert archive_at(tmp_path).remove_uncommitted() == 0
    logged(tmp_path, "0", [])
    (tmp_path / "_spark_metadata" / "0").write_text("v7\n")
    with pytest.raises(SparkConnectorError, match="v7"):
        archive_at(tmp_path).remove_uncommitted()
    assert (data / "part-1.parquet").exists()


def _hold(folder: Path, pipe: Any) -> None:
    with archive_at(folder).locked():
        pipe.send("held")
        pipe.recv()


def test_one_run_at_a_time_and_none_after_a_process_died(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    holder = context.Process(target=_hold, args=(tmp_path, theirs))
    holder.start()
    assert ours.recv() == "held"
    with (
        pytest.raises(SparkConnectorError, match="another run is archiving"),
        archive_at(tmp_path).locked(),
    ):
        pass
    holder.kill()
    holder.join()
    with archive_at(tmp_path).locked():
        pass


def test_partition_counts_never_shrink(tmp_path: Path) -> None:
    archive = archive_at(tmp_path)
    archive.note_partitions({"a": 3, "b": 1})
    archive.note_partitions({"a": 2, "c": 5})
    assert noted_partitions(f"file://{tmp_path}") == {"a": 3, "b": 1, "c": 5}
    (tmp_path / "_topics.json").write_text("[]")
    with pytest.raises(SparkConnectorError, match=r"_topics\.json"):
        noted_partitions(str(tmp_path))


def test_other_stores_than_files_are_left_to_spark() -> None:
    assert ArchiveFolder.at("s3a://lake/topics", "s3a://lake/topics/_checkpoint") is None
    assert noted_partitions("s3a://lake/topics") == {}


# --- Settings, progress, report ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["header:", "field", "headers:a", "offset", ""])
def test_what_names_no_part_of_a_record_is_refused(name: str) -> None:
    with pytest.raises(SparkConnectorError, match="names no part of a record"):
        require_field(name)


@pytest.mark.parametrize(
    "settings",
    [{"sequence": "number"}, {"scope": "cluster"}, {"partitioner": "java"}, {"decode": "xml"}],
)
def test_an_audit_refuses_what_makes_no_sense(settings: dict[str, str]) -> None:
    with pytest.raises(SparkConnectorError, match=next(iter(settings.values()))):
        AuditSettings(TopicSource("127.0.0.1:9092", ("a",)), **settings).check()  # type: ignore[arg-type]  # texts


def test_topics_are_named_one_way() -> None:
    with pytest.raises(SparkConnectorError, match="names of topics or a pattern"):
        TopicSource("127.0.0.1:9092").options()
    with pytest.raises(SparkConnectorError, match="names of topics or a pattern"):
        TopicSource("127.0.0.1:9092", ("a",), "a.*").options()


def test_time_left_is_what_is_left_at_the_rate_so_far() -> None:
    assert PipelineProgress("x", 100, 50.0, 200).seconds_left == 4.0
    assert PipelineProgress("x", 100, 50.0, 0).seconds_left == 0.0
    assert PipelineProgress("x", 0, 0.0, 200).seconds_left is None
    assert PipelineProgress("x", 100, 50.0, None).seconds_left is None


def test_our_own_sentence_is_found_in_a_trace_of_sparks() -> None:
    trace = (
        "Job aborted\nTraceback (most recent call last):\n  File x\n"
        "odradek.spark_connector.errors.SparkConnectorError: the topic is full\n\n\tat org.apache"
    )
    assert first_line(RuntimeError(trace)) == "the topic is full"
    other = "\n  An exception\nTraceback (most recent call last):\n  x\nValueError: no\n\tat org."
    assert first_line(RuntimeError(other)) == "ValueError: no"


def test_a_page_shows_hostile_keys_as_text() -> None:
    audit = PartitionAudit(
        "<t>", 0, 0, 5, 5, 0, 0, 10, 0, 0, 5, None, None, 0, 0, (2, 2, 2, 2), None, 0
    )
    fault = AuditFault("key moved", "<t>", None, 1, ("key '<script>alert(1)</script>'",))
    plot = Plot("Records", "records", (Bar("<b>", 5), Bar("none", 0)))
    page = as_html(AuditReport("run", "h:1", 0, 1.0, (audit,), (fault,), ("a <note>",), (plot,)))
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<t>" not in page
    assert "<b>: 5" not in page
    assert page.count("<rect") == 2

"""All logs of a broker: start, stop, make, delete, and who may use the directories."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.common.errors import KafkaError
from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.runtime.steps import run_at_once
from odradek.storage import LogConfig, LogDirectoryError, LogManager, TopicPartition

NOW_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))


@pytest.fixture
def start(tmp_path: Path):
    """Start a log manager over `data-0`, `data-1`...; all are let go of at the end."""
    started = []

    def start_one(directories: int = 1, **arguments) -> LogManager:
        paths = [str(tmp_path / f"data-{number}") for number in range(directories)]
        manager = LogManager(paths, clock=ManualClock(NOW_MS), **arguments)
        started.append(manager)
        manager.load_logs()
        return manager

    yield start_one
    for manager in started:
        manager.abandon()


def append(log, value: bytes = b"value", timestamp: int = NOW_MS) -> None:
    batch = build_batch([(b"key", value, timestamp, [])])
    log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    log.flush_appends()


def test_a_restart_finds_logs_and_topic_ids(start, tmp_path) -> None:
    manager = start()
    append(manager.get_or_create_log(ORDERS, TOPIC_ID))
    append(manager.get_or_create_log(TopicPartition("a-topic-with-dashes", 12)))
    manager.close()
    again = start()
    assert set(again.logs) == {ORDERS, TopicPartition("a-topic-with-dashes", 12)}
    assert again.get_log(ORDERS).topic_id == TOPIC_ID
    assert again.get_log(ORDERS).log_end_offset == 1
    assert again.get_log(TopicPartition("orders", 1)) is None


def test_a_clean_end_is_marked_until_the_next_start(start, tmp_path) -> None:
    mark = tmp_path / "data-0" / ".kafka_cleanshutdown"
    manager = start()
    assert not mark.exists()
    manager.close()
    assert mark.exists()
    start()
    assert not mark.exists()


def test_after_a_clean_end_files_are_taken_at_their_word_and_after_a_crash_not(start) -> None:
    manager = start()
    log = manager.get_or_create_log(ORDERS)
    append(log)
    append(log)
    path = log.segments.active.log_path
    damaged = bytearray(Path(path).read_bytes())
    damaged[-1] ^= 1
    manager.close()
    Path(path).write_bytes(damaged)
    manager = start()
    assert manager.get_log(ORDERS).log_end_offset == 2
    manager.abandon()
    Path(manager.log_dirs[0], "recovery-point-offset-checkpoint").unlink()
    assert start().get_log(ORDERS).log_end_offset == 1


def test_a_second_broker_is_refused_the_directory(start) -> None:
    start()
    with pytest.raises(LogDirectoryError, match="another broker is using"):
        start()


def test_another_process_is_refused_the_directory_until_the_first_is_gone(start) -> None:
    manager = start()
    program = (
        "import sys; from odradek.storage import *; from odradek.runtime.clock import *\n"
        "LogManager(sys.argv[1:], clock=SystemClock())"
    )
    command = [sys.executable, "-c", program, *manager.log_dirs]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "another broker is using the log directory" in refused.stderr
    manager.close()
    subprocess.run(command, check=True, timeout=60)


def test_a_refusal_leaves_the_other_directories_free(start, tmp_path) -> None:
    taken = LogManager([str(tmp_path / "data-1")], clock=ManualClock(NOW_MS))
    with pytest.raises(LogDirectoryError, match="data-1"):
        start(directories=2)
    start(directories=1)
    taken.abandon()


def test_a_deleted_log_is_gone_after_a_restart_too(start, tmp_path) -> None:
    manager = start()
    append(manager.get_or_create_log(ORDERS, TOPIC_ID))
    manager.delete_log(ORDERS)
    manager.delete_log(ORDERS)
    assert not (tmp_path / "data-0/orders-0").exists()
    new = manager.get_or_create_log(ORDERS, bytes(16))
    assert new.log_end_offset == 0
    manager.close()
    assert start().get_log(ORDERS).topic_id == bytes(16)


def test_a_log_of_another_topic_of_that_name_is_not_handed_out(start) -> None:
    manager = start()
    manager.get_or_create_log(ORDERS, TOPIC_ID)
    assert manager.get_or_create_log(ORDERS, TOPIC_ID) is manager.get_log(ORDERS)
    with pytest.raises(KafkaError, match="INCONSISTENT_TOPIC_ID"):
        manager.get_or_create_log(ORDERS, bytes(16))


def test_a_log_without_topic_id_gets_one(start) -> None:
    manager = start()
    manager.get_or_create_log(ORDERS)
    manager.get_or_create_log(ORDERS, TOPIC_ID)
    manager.close()
    assert start().get_log(ORDERS).topic_id == TOPIC_ID


def test_new_logs_go_where_the_fewest_are(start) -> None:
    manager = start(directories=2)
    for number in range(4):
        manager.get_or_create_log(TopicPartition("orders", number))
    for path in manager.log_dirs:
        assert len(list(Path(path).glob("orders-*"))) == 2
    manager.close()
    assert len(start(directories=2).logs) == 4


def test_folders_that_are_no_partitions_are_left_alone(start, tmp_path) -> None:
    for name in ("lost+found", "no-number", "__cluster_metadata-0", "-1", "zero-007"):
        (tmp_path / "data-0" / name).mkdir(parents=True)
    assert start().logs == {}
    assert (tmp_path / "data-0/__cluster_metadata-0").exists()


def test_topics_have_settings_of_their_own(start, tmp_path) -> None:
    manager = start()
    manager.get_or_create_log(ORDERS, config=LogConfig(segment_bytes=123))
    manager.get_or_create_log(TopicPartition("other", 0))
    manager.close()
    again = LogManager([str(tmp_path / "data-0")], clock=ManualClock(NOW_MS))
    again.load_logs({"orders": LogConfig(segment_bytes=456)})
    assert again.get_log(ORDERS).config.segment_bytes == 456
    assert again.get_log(TopicPartition("other", 0)).config == LogConfig()
    again.abandon()


def test_high_watermarks_are_written_in_kafkas_format_and_found_again(start, tmp_path) -> None:
    manager = start()
    manager.get_or_create_log(ORDERS)
    manager.get_or_create_log(TopicPartition("other", 3))
    manager.checkpoint_high_watermarks({ORDERS: 17, TopicPartition("other", 3): 5}.get)
    text = (tmp_path / "data-0/replication-offset-checkpoint").read_text()
    assert text == "0\n2\norders 0 17\nother 3 5\n"
    manager.abandon()
    assert start().high_watermarks == {ORDERS: 17, TopicPartition("other", 3): 5}


def test_the_log_start_offset_survives_a_crash_once_written(start, tmp_path) -> None:
    manager = start()
    log = manager.get_or_create_log(ORDERS)
    for _ in range(5):
        append(log)
    log.advance_log_start_offset(3)
    manager.checkpoint_offsets()
    text = (tmp_path / "data-0/log-start-offset-checkpoint").read_text()
    assert text == "0\n1\norders 0 3\n"
    manager.abandon()
    assert start().get_log(ORDERS).log_start_offset == 3


def test_flushed_logs_are_written_as_recovery_points(start, tmp_path) -> None:
    manager = start()
    log = manager.get_or_create_log(ORDERS)
    append(log)
    log.flush_to_disk()
    manager.checkpoint_offsets()
    path = tmp_path / "data-0/recovery-point-offset-checkpoint"
    assert path.read_text() == "0\n1\norders 0 0\n"  # a recovery reads whole segments
    log.roll(NOW_MS)
    log.flush_to_disk()
    manager.checkpoint_offsets()
    assert path.read_text() == "0\n1\norders 0 1\n"


@pytest.mark.parametrize("looked_at", [0, 1, 2])
def test_a_log_that_is_made_anew_while_checkpoints_are_collected_has_flushed_nothing(
    start, tmp_path, looked_at: int
) -> None:
    manager = start()
    for name in (ORDERS, TopicPartition("other", 3)):
        log = manager.get_or_create_log(name)
        append(log)
        log.roll(NOW_MS)
        log.flush_to_disk()
    collecting = manager.prepare_recovery_points()
    for _ in range(looked_at):
        next(collecting)
    manager.delete_log(ORDERS)
    manager.get_or_create_log(ORDERS)
    run_at_once(collecting)()
    text = (tmp_path / "data-0/recovery-point-offset-checkpoint").read_text()
    assert "other 3 1\n" in text
    assert "orders 0 1\n" not in text


def test_a_recovery_point_that_goes_back_while_others_are_collected_stays_there(
    start, tmp_path
) -> None:
    manager = start()
    for name in (ORDERS, TopicPartition("other", 3)):
        log = manager.get_or_create_log(name)
        for _ in range(3):
            append(log)
        log.roll(NOW_MS)
        log.flush_to_disk()
    collecting = manager.prepare_recovery_points()
    next(collecting)
    next(collecting)
    manager.get_log(ORDERS).truncate_to(1)
    run_at_once(collecting)()
    text = (tmp_path / "data-0/recovery-point-offset-checkpoint").read_text()
    assert "orders 0 3\n" not in text


def test_retention_works_on_all_logs(start) -> None:
    manager = start()
    for number in range(3):
        log = manager.get_or_create_log(
            TopicPartition("orders", number), config=LogConfig(retention_ms=1000)
        )
        append(log, timestamp=NOW_MS - 1001 + number)
    assert run_at_once(manager.delete_old_segments(lambda _: 1)) == 1
    assert [log.log_start_offset for log in manager.logs.values()] == [1, 0, 0]


def test_new_directories_are_marked_as_this_brokers(start, tmp_path) -> None:
    manager = start(directories=2)
    assert manager.directories.cluster_id() is None
    manager.directories.claim(3, "aCluster", random.Random(1))
    manager.directories.claim(3, "aCluster", random.Random(2))
    assert manager.directories.cluster_id() == "aCluster"
    texts = [Path(path, "meta.properties").read_text() for path in manager.log_dirs]
    for text in texts:
        lines = text.splitlines()
        assert lines[:3] == ["version=1", "node.id=3", "cluster.id=aCluster"]
        assert lines[3].startswith("directory.id=")
    assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("node_id", "cluster_id", "message"),
    [(4, "aCluster", "of broker 3, not 4"), (3, "other", "of cluster aCluster, not other")],
)
def test_directories_of_another_broker_or_cluster_are_refused(
    start, node_id, cluster_id, message
) -> None:
    manager = start()
    manager.directories.claim(3, "aCluster", random.Random(1))
    with pytest.raises(LogDirectoryError, match=message):
        manager.directories.claim(node_id, cluster_id, random.Random(1))


@pytest.mark.parametrize(
    "text",
    [
        "#\n#Sat Nov 21 09:00:38\nnode.id=1\ndirectory.id=mHGqbg\nversion=1\ncluster.id=5L6\n",
        "#\nversion=0\nbroker.id=1\ncluster.id=5L6\n",
    ],
    ids=["KRaft", "ZooKeeper"],
)
def test_directories_of_kafka_are_recognised(start, tmp_path, text: str) -> None:
    manager = start()
    (tmp_path / "data-0/meta.properties").write_text(text)
    assert manager.directories.cluster_id() == "5L6"
    manager.directories.claim(1, "5L6", random.Random(1))
    with pytest.raises(LogDirectoryError):
        manager.directories.claim(2, "5L6", random.Random(1))


@pytest.mark.parametrize("text", ["", "version=7\n", "version=1\nnode.id=one\n"])
def test_damaged_properties_are_refused(start, tmp_path, text: str) -> None:
    manager = start()
    (tmp_path / "data-0/meta.properties").write_text(text)
    with pytest.raises(LogDirectoryError, match=r"meta\.properties"):
        manager.directories.cluster_id()


def test_a_log_that_cannot_be_closed_leaves_its_directory_unmarked(start, tmp_path) -> None:
    manager = start()
    for number in range(3):
        append(manager.get_or_create_log(TopicPartition("orders", number)))
    (tmp_path / "data-0/orders-1/00000000000000000000.timeindex").mkdir()
    manager.close()
    assert not (tmp_path / "data-0/.kafka_cleanshutdown").exists()
    for number in (0, 2):
        assert (tmp_path / f"data-0/orders-{number}/00000000000000000001.snapshot").exists()

"""`odradek log`: dump, verify and repair, on folders that our log manager and Kafka wrote."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.data_folders import ORDERS_ID, write_data_folder
from support.log_damage import batches_of, flip, segment_paths

from odradek.protocol.internal import find_message
from odradek.protocol.internal.versioned import CONSUMER_OFFSETS, encode_record
from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.runtime.rng import uuid_to_text
from odradek.storage import LogManager
from odradek.testing.process.broker_process import BrokerProcess

KAFKA_MADE = Path(__file__).parents[1] / "storage" / "data" / "kafka-4.3.1" / "orders-0"
FIRST = f"{0:020d}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "data"
    write_data_folder(path)
    return path


@pytest.fixture
def root(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "data")


def entries(outcome, kind: str | None = None) -> list[dict]:
    found = [json.loads(line) for line in outcome.lines]
    return [entry for entry in found if kind in (None, entry["type"])]


# --- dump -----------------------------------------------------------------------------------


def test_dump_shows_each_batch_of_a_partition(odradek) -> None:
    outcome = odradek("log", "dump", KAFKA_MADE)
    assert outcome.code == 0
    lines = [line for line in outcome.lines if line.startswith("batch ")]
    assert len(lines) == 24
    assert lines[1].startswith("batch base_offset=1 last_offset=2 records=2 position=117 size=122 ")
    assert "compression=gzip" in lines[1]
    assert "producer_id=77 producer_epoch=3 base_sequence=1 last_sequence=2" in lines[1]
    assert "crc=160015196 crc_valid=true" in lines[1]
    files = [line for line in outcome.lines if line.startswith("== ")]
    assert [line.split()[1] for line in files] == [
        str(KAFKA_MADE / f"{base:020d}.log") for base in (0, 33)
    ]


def test_dump_shows_records_with_keys_values_and_headers(odradek) -> None:
    outcome = odradek("log", "dump", KAFKA_MADE, "--records", "--json", "--max-records", "3")
    records = entries(outcome, "record")
    assert [record["offset"] for record in records] == [0, 1, 2]
    assert records[2] == {
        "type": "record",
        "file": str(KAFKA_MADE / f"{FIRST}.log"),
        "offset": 2,
        "timestamp": 1_700_000_000_300,
        "sequence": 2,
        "key": "key-1",
        "value": "value-1-1-" * 4,
        "headers": [{"key": "n", "value": "1"}],
    }


@pytest.mark.parametrize("index_is_right", [True, False])
@pytest.mark.parametrize(("first", "last"), [(0, 0), (5, 9), (10, 34), (33, 33), (40, 99)])
def test_dump_shows_a_range_of_offsets(
    odradek, tmp_path: Path, first: int, last: int, index_is_right: bool
) -> None:
    folder = shutil.copytree(KAFKA_MADE, tmp_path / "orders-0")
    if not index_is_right:
        (folder / f"{FIRST}.index").write_bytes(bytes([0, 0, 0, 1, 0, 0, 4, 0]))
    options = ("--records", "--json", "--from-offset", first, "--to-offset", last)
    records = entries(odradek("log", "dump", folder, *options), "record")
    assert [record["offset"] for record in records] == list(range(first, min(last, 47) + 1))


def test_dump_shows_bytes_that_are_no_text_in_base64(odradek, tmp_path: Path) -> None:
    path = tmp_path / f"{FIRST}.log"
    path.write_bytes(build_batch([(None, b"\xff\x00", 5, [("h", b"\xfe"), ("n", None)])]))
    (record,) = entries(odradek("log", "dump", path, "-r", "--json"), "record")
    assert record["key"] is None
    assert record["value_base64"] == "/wA="
    assert record["headers"] == [{"key": "h", "value_base64": "/g=="}, {"key": "n", "value": None}]


def test_dump_decodes_the_markers_of_transactions(odradek, root: Path) -> None:
    outcome = odradek("log", "dump", root / "orders-0", "-r", "--json")
    controls = [entry["control"] for entry in entries(outcome, "record") if "control" in entry]
    # five rounds of abort, commit, abort, abort
    assert [each["type"] for each in controls] == ["ABORT", "COMMIT", "ABORT", "ABORT"] * 5
    assert {each["coordinator_epoch"] for each in controls} == {7}


def test_dump_decodes_committed_offsets(odradek, tmp_path: Path) -> None:
    key = find_message("OffsetCommitKey")(group="g", topic="orders", partition=3)
    value = find_message("OffsetCommitValue")(
        offset=42, leader_epoch=1, metadata="m", commit_timestamp=5
    )
    encoded = encode_record(CONSUMER_OFFSETS, key, value, 3)
    folder = tmp_path / "__consumer_offsets-7"
    folder.mkdir()
    records = [(*encoded, 5, []), (encoded[0], None, 6, []), (b"\x7f\xff", b"x", 7, [])]
    (folder / f"{FIRST}.log").write_bytes(build_batch(records))
    found = [
        entry["decoded"]
        for entry in entries(odradek("log", "dump", folder, "--offsets", "--json"), "record")
    ]
    expected_key = {"group": "g", "topic": "orders", "partition": 3}
    assert (found[0]["type"], found[0]["version"]) == ("OffsetCommit", 3)
    assert found[0]["key"] == expected_key
    assert (found[0]["value"]["offset"], found[0]["value"]["metadata"]) == (42, "m")
    assert (found[1]["key"], found[1]["value"]) == (expected_key, None)
    assert found[2] == {"problem": "a kind of record that is not known"}


def test_dump_shows_people_what_was_decoded_instead_of_bytes(odradek, root: Path) -> None:
    lines = odradek("log", "dump", root / "orders-0", "-r").lines
    marker = next(line for line in lines if "ABORT" in line)
    assert "key=" not in marker
    assert 'control={"type": "ABORT", "coordinator_epoch": 7}' in marker


def test_dump_shows_every_kind_of_file(odradek, root: Path) -> None:
    outcome = odradek("log", "dump", root, "--all", "--json")
    assert outcome.code == 0
    found = entries(outcome)
    assert {entry["type"] for entry in found} == {
        "batch",
        "offset_index",
        "time_index",
        "transaction_index",
        "producer",
        "leader_epoch",
        "partition_metadata",
        "checkpoint",
        "meta_properties",
        "clean_shutdown",
    }
    (metadata,) = [each for each in found if each["file"].endswith("orders-0/partition.metadata")]
    assert metadata["topic_id"] == uuid_to_text(ORDERS_ID)
    (mark,) = entries(outcome, "clean_shutdown")
    assert mark["version"] == 0
    shown = {Path(entry["file"]) for entry in found}
    silent = {path for path in root.rglob("*") if path.is_file()} - shown
    assert {path.name for path in silent if path.stat().st_size > 10} <= {
        ".lock",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
    }


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_dump_holds_index_entries_to_the_log_when_requested(
    odradek, root: Path, suffix: str
) -> None:
    path = segment_paths(root)[1].with_suffix(suffix)
    assert odradek("log", "dump", path, "--verify").code == 0
    flip(path, path.stat().st_size - 1)
    assert odradek("log", "dump", path).code == 0
    outcome = odradek("log", "dump", path, "--verify")
    assert outcome.code == 1
    assert outcome.lines[-1].startswith("damage ")


def test_dump_goes_on_behind_damage(odradek, root: Path) -> None:
    path = segment_paths(root)[1]
    batches = batches_of(path)
    flip(path, batches[1].position + 70)
    flip(path, batches[3].position + 16, 0x40)
    outcome = odradek("log", "dump", path, "--json", "-r")
    assert outcome.code == 1
    damaged = entries(outcome, "damage")
    assert [entry["position"] for entry in damaged] == [batches[1].position, batches[3].position]
    shown = [entry["base_offset"] for entry in entries(outcome, "batch") if entry["crc_valid"]]
    assert shown == [
        batch.base_offset for number, batch in enumerate(batches) if number not in (1, 3)
    ]


def test_dump_says_what_a_file_is_not(odradek, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    outcome = odradek("log", "dump", tmp_path / "notes.txt")
    assert outcome.code == 1
    assert "is no file of a log" in outcome.err
    assert odradek("log", "dump", tmp_path).code == 1
    assert odradek("log", "dump", tmp_path / "gone.log").code == 1


# --- verify and repair ----------------------------------------------------------------------


def test_verify_ends_with_0_where_all_is_well(odradek, root: Path) -> None:
    outcome = odradek("log", "verify", root)
    assert (outcome.code, outcome.out) == (0, "")
    assert "3 partitions" in outcome.err


def test_verify_names_file_offset_and_position(odradek, root: Path) -> None:
    path = segment_paths(root)[1]
    batch = batches_of(path)[2]
    flip(path, batch.position + 70)
    outcome = odradek("log", "verify", root)
    assert outcome.code == 1
    (line,) = outcome.lines
    assert line.startswith(
        f"batch: {path}, offset {batch.base_offset}, position {batch.position}: the batch of "
    )
    (found,) = [json.loads(line) for line in odradek("log", "verify", root, "--json").lines]
    assert found["file"] == str(path)
    assert (found["kind"], found["damage"]) == ("batch", True)
    assert (found["offset"], found["position"]) == (batch.base_offset, batch.position)


def test_verify_shows_a_bar_to_whoever_looks_and_ends_the_same(root: Path) -> None:
    flip(segment_paths(root)[1], 70)
    command = [sys.executable, "-m", "odradek", "log", "verify", str(root)]
    ours, theirs = pty.openpty()
    done = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
        while data := os.read(ours, 4096):
            shown += data
    os.close(ours)
    out, _ = done.communicate()
    assert done.returncode == 1
    assert out.startswith(b"batch: ")
    assert b"verifying" in shown


def test_verify_ends_with_2_where_nothing_can_be_read(odradek, tmp_path: Path, root: Path) -> None:
    assert odradek("log", "verify", tmp_path / "gone").code == 2
    path = segment_paths(root)[1]
    path.unlink()
    path.mkdir()
    assert odradek("log", "verify", root).code == 2


def test_verify_and_repair_keep_away_from_a_running_broker(odradek, root: Path) -> None:
    manager = LogManager([str(root)], clock=ManualClock(0))
    for command in ("verify", "repair"):
        outcome = odradek("log", command, root)
        assert outcome.code == 2
        assert "a broker is running on" in outcome.err
    live = odradek("log", "verify", "--live", root)
    assert (live.code, live.out) == (0, "")
    assert "may be writing" in live.err
    manager.abandon()


@pytest.mark.parametrize("live", [(), ("--live",)], ids=" ".join)
def test_a_folder_that_is_no_brokers_is_an_error(odradek, tmp_path: Path, live: tuple) -> None:
    (tmp_path / "rc-0").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    for command in (("verify", *live), ("repair", "--dry-run")):
        outcome = odradek("log", *command, tmp_path)
        assert (outcome.code, outcome.out) == (2, "")
        assert f"{tmp_path} is no data folder" in outcome.err


@pytest.mark.clients
def test_verify_live_finds_nothing_on_a_broker_that_is_written_to(odradek, tmp_path: Path) -> None:
    """Small segments, and a group whose offsets its partition's first batch is."""
    settings = {"log.segment.bytes": "1048576"}
    with BrokerProcess(tmp_path / "data", settings=settings) as broker, ExitStack() as stack:
        to_broker = ("-b", broker.bootstrap)
        assert odradek("topics", "create", "t", "-p", 3, *to_broker).code == 0
        child = stack.enter_context(
            subprocess.Popen(
                f"yes some line | {sys.executable} -m odradek produce t -b {broker.bootstrap}",
                shell=True,
                start_new_session=True,
                stderr=subprocess.DEVNULL,
            )
        )
        stack.callback(os.killpg, child.pid, signal.SIGKILL)
        group = ("--group", "g", "--from-beginning", "-n", 20_000, *to_broker)
        assert odradek("consume", "t", *group).code == 0
        for _ in range(3):
            outcome = odradek("log", "verify", "--live", tmp_path / "data")
            assert (outcome.code, outcome.out) == (0, "")


def test_repair_makes_good_what_verify_found(odradek, root: Path) -> None:
    path = segment_paths(root)[-1]
    path.write_bytes(path.read_bytes() + b"torn")
    segment_paths(root)[0].with_suffix(".index").write_bytes(b"no index")
    dry = odradek("log", "repair", "--dry-run", root)
    assert dry.code == 0
    assert odradek("log", "verify", root).code == 1
    done = odradek("log", "repair", root)
    assert (done.code, done.lines) == (0, dry.lines)
    assert [line.partition(":")[0] for line in done.lines] == ["cut", "rebuild"]
    assert odradek("log", "verify", root).code == 0


def test_repair_ends_with_1_where_something_is_left(odradek, root: Path) -> None:
    flip(segment_paths(root)[1], 70)
    outcome = odradek("log", "repair", root, "--json")
    assert outcome.code == 1
    (step,) = [json.loads(line) for line in outcome.lines]
    assert (step["action"], step["file"]) == ("leave", str(segment_paths(root)[1]))

"""Verifying data folders: what is as it was written passes, and each kind of damage is named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tracemalloc
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.data_folders import MORE_ORDERS, ORDERS, PAYMENTS, write_data_folder
from support.log_damage import DAMAGES, Damage, batches_of, flip, segment_paths

from odradek.log_tools.verify.data_folder import hold_locks
from odradek.log_tools.verify.finding import Finding
from odradek.log_tools.verify.log_verify import Verification, VerifyOptions
from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import build_batch
from odradek.protocol.records.builder import write_crc
from odradek.runtime.clock import ManualClock
from odradek.storage import LogDirectoryError, LogManager

KAFKA_MADE = Path(__file__).parents[1] / "storage" / "data" / "kafka-4.3.1" / "orders-0"


def verify(*paths: Path, **options: bool) -> list[Finding]:
    return list(Verification([str(path) for path in paths], VerifyOptions(**options)).findings())


def damages(*paths: Path, **options: bool) -> list[Finding]:
    return [finding for finding in verify(*paths, **options) if finding.is_damage]


def test_what_was_written_and_closed_passes(root: Path) -> None:
    assert len(segment_paths(root)) > 4
    assert verify(root) == []
    assert verify(root, deep=True) == []


def test_a_compacted_log_passes(tmp_path: Path) -> None:
    root = tmp_path / "data"
    write_data_folder(root, compacted=True)
    batches = [batch for path in root.glob("profiles-0/*.log") for batch in batches_of(path)]
    assert any(batch.records_count == 0 for batch in batches)
    assert damages(root, deep=True) == []
    (root / "cleaner-offset-checkpoint").unlink()
    assert damages(root, deep=True) == []


def test_a_partition_of_kafka_passes_by_itself(tmp_path: Path) -> None:
    assert verify(KAFKA_MADE, deep=True) == []


def test_after_a_crash_only_the_missing_mark_is_noted(tmp_path: Path) -> None:
    write_data_folder(tmp_path / "data", clean=False)
    found = verify(tmp_path / "data")
    assert [(finding.is_damage, os.path.basename(finding.path)) for finding in found] == [
        (False, ".kafka_cleanshutdown")
    ]


@pytest.mark.parametrize("damage", DAMAGES, ids=repr)
def test_damage_is_named(root: Path, damage: Damage) -> None:
    name = damage.do(root)
    found = damages(root)
    assert (damage.kind, str(root / name)) in [(each.kind, each.path) for each in found]


def test_a_finding_tells_offset_and_position(root: Path) -> None:
    path = segment_paths(root)[2]
    batch = batches_of(path)[3]
    flip(path, batch.position + 65)
    (found,) = damages(root)
    assert (found.offset, found.position) == (batch.base_offset, batch.position)


@pytest.mark.parametrize("byte_in_batch", [8, 11, 16, 22, 70])
def test_a_damaged_batch_hides_none_behind_it(root: Path, byte_in_batch: int) -> None:
    path = segment_paths(root)[1]
    batches = batches_of(path)
    first, second = batches[1], batches[4]
    flip(path, first.position + byte_in_batch, 0x10)
    flip(path, second.position + byte_in_batch, 0x10)
    found = damages(root)
    assert [each.position for each in found] == [first.position, second.position]
    assert [each.offset for each in found] == [first.base_offset, second.base_offset]


def test_the_first_and_the_last_batch_of_a_segment_are_looked_at(root: Path) -> None:
    path = segment_paths(root)[1]
    last = batches_of(path)[-1].position
    flip(path, 70)
    flip(path, path.stat().st_size - 1)
    assert [each.position for each in damages(root)] == [0, last]


def test_a_batch_larger_than_what_is_read_at_once_is_checked(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    large = build_batch([(b"key", os.urandom(3 << 20), 5, [])])
    after = build_batch([(b"key", b"after", 6, [])], base_offset=1)
    path = folder / f"{0:020d}.log"
    path.write_bytes(large + after)
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    assert verify(folder) == []
    flip(path, 2 << 20)
    assert [each.position for each in damages(folder)] == [0]


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / "leader-epoch-checkpoint").write_text("0\n0\n")
    batch = build_batch([(b"key", bytes(16_000), 5, [])])
    with (folder / f"{0:020d}.log").open("wb") as file:
        for offset in range(2000):
            batch[:8] = offset.to_bytes(8, "big")
            file.write(batch)
    tracemalloc.start()
    found = verify(folder)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == []
    assert peak < 8 << 20


def test_bytes_made_to_look_like_batches_do_not_keep_it_busy(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    path = folder / f"{0:020d}.log"
    header = bytes(8) + (1 << 17).to_bytes(4, "big") + bytes(4) + b"\2"
    path.write_bytes((header + b"\2" * 3) * (1 << 15))
    (found,) = damages(folder)
    assert (found.kind, found.position) == ("torn-tail", 0)


def test_the_zeros_that_kafka_makes_indexes_larger_with_are_no_damage(root: Path) -> None:
    for suffix in (".index", ".timeindex"):
        path = segment_paths(root)[-1].with_suffix(suffix)
        path.write_bytes(path.read_bytes() + bytes(10 << 20))
    assert verify(root) == []


def test_compaction_leaves_gaps_and_nothing_else_does(root: Path) -> None:
    path = segment_paths(root)[1]
    batch = batches_of(path)[2]
    content = path.read_bytes()
    path.write_bytes(content[: batch.position] + content[batch.position + batch.size_in_bytes :])
    missing = f"offsets {batch.base_offset} to {batch.last_offset} are missing"
    assert any(missing in each.message for each in damages(root))
    (root / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 40\n")
    assert not any(each.kind == "offsets" for each in damages(root))


def test_records_that_do_not_decompress_are_found_behind_a_right_checksum(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    values = [(b"key", b"value" * 50, 5, [])] * 20
    for number, compression in enumerate(list(Compression)[1:]):
        batch = build_batch(values, base_offset=20 * number, compression=compression)
        del batch[-5:]
        batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
        write_crc(batch)
        with (folder / f"{0:020d}.log").open("ab") as file:
            file.write(batch)
    found = damages(folder)
    assert {each.kind for each in found} == {"records"}
    assert len(found) == 4


def test_files_that_a_live_broker_is_about_to_remove_are_not_called_leftovers(root: Path) -> None:
    """A segment that is deleted is renamed, and removed after file.delete.delay.ms."""
    path = segment_paths(root)[-1]
    path.with_name(f"{path.name}.deleted").write_bytes(path.read_bytes())
    (note,) = verify(root, live=True)
    assert "about to be removed by the broker" in note.message
    (note,) = verify(root)
    assert "left behind by work that was interrupted" in note.message


def test_what_a_live_broker_has_not_finished_is_no_damage(root: Path) -> None:
    path = segment_paths(root)[-1]
    path.write_bytes(path.read_bytes() + b"half a batch")
    (root / "replication-offset-checkpoint").write_text("0\n1\norders 0 9999\n")
    (root / ".kafka_cleanshutdown").unlink()
    assert {each.kind for each in damages(root)} == {"torn-tail", "checkpoint"}
    assert verify(root, live=True) == []


def test_verifying_changes_nothing_and_tells_how_far_it_is(root: Path) -> None:
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    flip(segment_paths(root)[1], 70)
    before = contents()
    read: list[int] = []
    verification = Verification([str(root)], VerifyOptions(), on_bytes=read.append)
    assert list(verification.findings())
    assert contents() == before
    assert sum(read) == verification.total_bytes()
    assert verification.total_bytes() == sum(
        len(content) for path, content in before.items() if path.suffix == ".log"
    )
    assert verification.partitions_count == len([ORDERS, MORE_ORDERS, PAYMENTS])


def test_a_partition_in_two_folders_is_found(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(root / "meta.properties", other)
    shutil.copy(root / ".kafka_cleanshutdown", other)
    shutil.copytree(root / "payments-0", other / "payments-0")
    (found,) = damages(root, other)
    assert (found.kind, found.path) == ("directory", str(other / "payments-0"))


def test_folders_of_two_brokers_are_found(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    text = (root / "meta.properties").read_text()
    (other / "meta.properties").write_text(text.replace("node.id=1", "node.id=2"))
    (found,) = damages(root, other)
    assert (found.kind, found.path) == ("meta-properties", str(other / "meta.properties"))


def test_a_file_that_may_not_be_read_is_reported(root: Path) -> None:
    path = segment_paths(root)[1]
    path.unlink()
    path.mkdir()
    found = damages(root)
    assert ("unreadable", str(path)) in [(each.kind, each.path) for each in found]
    assert {each.path for each in found} == {str(path)}


# --- Who else is there ----------------------------------------------------------------------


def test_a_broker_keeps_verification_out_and_is_kept_out_by_it(root: Path) -> None:
    manager = LogManager([str(root)], clock=ManualClock(0))
    with ExitStack() as stack, pytest.raises(LogDirectoryError, match="stop it first"):
        hold_locks([str(root)], stack, exclusive=False)
    with ExitStack() as stack, pytest.raises(LogDirectoryError):
        hold_locks([str(root / "orders-0")], stack, exclusive=False)
    manager.abandon()
    with ExitStack() as stack:
        hold_locks([str(root)], stack, exclusive=False)
        with pytest.raises(LogDirectoryError):
            LogManager([str(root)], clock=ManualClock(0))
    LogManager([str(root)], clock=ManualClock(0)).abandon()


POSIX_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_the_lock_that_java_takes_is_seen(root: Path) -> None:
    command = [sys.executable, "-c", POSIX_LOCK, str(root / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        with ExitStack() as stack, pytest.raises(LogDirectoryError, match="stop it first"):
            hold_locks([str(root)], stack, exclusive=False)
        process.communicate()


def test_several_may_look_at_once_and_one_may_repair(root: Path) -> None:
    with ExitStack() as stack:
        hold_locks([str(root), str(root / "orders-0")], stack, exclusive=False)
        with ExitStack() as other:
            hold_locks([str(root)], other, exclusive=False)
        with ExitStack() as other, pytest.raises(LogDirectoryError):
            hold_locks([str(root)], other, exclusive=True)


def test_a_copy_that_no_broker_ever_used_needs_no_lock(root: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(root / "orders-0", tmp_path / "copy" / "orders-0")
    with ExitStack() as stack:
        hold_locks([str(copy)], stack, exclusive=True)
    assert not (copy.parent / ".lock").exists()
    assert verify(copy) == []

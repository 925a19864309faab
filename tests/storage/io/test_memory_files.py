"""The file system in memory keeps what was synced, and of the rest what a real one may keep."""

from __future__ import annotations

import errno
import random

import pytest

from odradek.storage import FileSlice
from odradek.tools.simulation.disks.disk_faults import WRITES
from odradek.tools.simulation.disks.memory_files import MemoryFiles, PowerCut

SEEDS = range(300)


@pytest.fixture
def files() -> MemoryFiles:
    """A directory that is on the disk."""
    made = MemoryFiles()
    made.make_directory("/d")
    made.sync_directory("/")
    return made


def append(files: MemoryFiles, path: str, data: bytes, *, create: bool = False) -> None:
    files.open(path, create=create).append([data], len(data))


def write_synced(files: MemoryFiles, path: str, data: bytes) -> None:
    append(files, path, data, create=True)
    files.open(path).sync()
    files.sync_directory("/d")


def after_cuts(files: MemoryFiles) -> list[MemoryFiles]:
    return [files.after_power_cut(random.Random(seed)) for seed in SEEDS]


def test_what_was_synced_is_there(files) -> None:
    files.write_atomically("/d/a", b"whole", sync=True)
    for after in after_cuts(files):
        assert after.list_directory("/d") == ["a"]
        assert after.read_bytes("/d/a") == b"whole"


def test_a_synced_file_without_a_synced_name_may_be_gone(files) -> None:
    append(files, "/d/a", b"whole", create=True)
    files.open("/d/a").sync()
    assert {after.exists("/d/a") for after in after_cuts(files)} == {True, False}
    assert all(
        after.read_bytes("/d/a") == b"whole" for after in after_cuts(files) if after.exists("/d/a")
    )


def test_unsynced_bytes_are_kept_dropped_torn_or_zeros(files) -> None:
    write_synced(files, "/d/a", b"old")
    append(files, "/d/a", b"new")
    found = {after.read_bytes("/d/a") for after in after_cuts(files)}
    assert {b"old", b"oldn", b"oldne", b"oldnew", b"old\0\0\0", b"oldn\0\0"} <= found
    assert all(each.startswith(b"old") and len(each) <= 6 for each in found)


def test_blocks_in_the_middle_can_be_missing(files) -> None:
    write_synced(files, "/d/a", b"")
    append(files, "/d/a", b"x" * 2000)
    found = [after.read_bytes("/d/a") for after in after_cuts(files)]
    assert any(b"x\0" in each and b"\0x" in each for each in found)


def test_a_cut_may_be_undone_until_it_is_synced(files) -> None:
    write_synced(files, "/d/a", b"0123456789")
    files.open("/d/a").truncate(4)
    append(files, "/d/a", b"new")
    found = {after.read_bytes("/d/a") for after in after_cuts(files)}
    assert {b"0123456789", b"0123", b"0123new", b"0123new789"} <= found
    files.open("/d/a").sync()
    assert {after.read_bytes("/d/a") for after in after_cuts(files)} == {b"0123new"}


def test_names_change_in_order(files) -> None:
    for name in "abc":
        append(files, f"/d/{name}", b"", create=True)
    files.rename("/d/a", "/d/z")
    files.remove("/d/b")
    found = {tuple(after.list_directory("/d")) for after in after_cuts(files)}
    assert found == {(), ("a",), ("a", "b"), ("a", "b", "c"), ("b", "c", "z"), ("c", "z")}


def test_a_file_renamed_over_another_may_be_empty(files) -> None:
    files.write_atomically("/d/a", b"old", sync=True)
    files.write_atomically("/d/a", b"new")
    found = {after.read_bytes("/d/a") for after in after_cuts(files)}
    assert {b"old", b"new", b""} <= found


def test_a_kill_costs_nothing_but_locks(files) -> None:
    append(files, "/d/a", b"unsynced", create=True)
    assert files.lock("/d/.lock") is not None
    assert files.lock("/d/.lock") is None
    after = files.after_kill()
    assert after.read_bytes("/d/a") == b"unsynced"
    assert after.lock("/d/.lock") is not None


def test_a_power_cut_ends_every_operation(files) -> None:
    files.cut_power_after(1)
    append_to = files.open("/d/a", create=True)
    for _ in range(2):
        with pytest.raises(PowerCut):
            append_to.append([b"x"], 1)
    assert files.after_power_cut(random.Random(0)).list_directory("/d") in ([], ["a"])


def test_a_full_disk_takes_a_part_and_then_refuses(files) -> None:
    file = files.open("/d/a", create=True)
    files.room_bytes = 4
    with pytest.raises(OSError, match="No space left") as refused:
        file.append([b"123", b"456"], 6)
    assert refused.value.errno == errno.ENOSPC
    assert files.read_bytes("/d/a") == b"1234"
    file.truncate(1)
    file.append([b"xyz"], 3)
    assert files.read_bytes("/d/a") == b"1xyz"
    files.remove("/d/a")
    assert files.room_bytes == 4


def test_the_nth_operation_below_a_path_fails(files) -> None:
    files.fail(errno.EIO, "/d/a", {"append"}, after=1, times=1)
    for name in ("a", "b"):
        append(files, f"/d/{name}", b"1", create=True)
    append(files, "/d/b", b"2")
    with pytest.raises(OSError, match="Input/output error"):
        append(files, "/d/a", b"2")
    append(files, "/d/a", b"3")
    assert files.read_bytes("/d/a") == b"13"


def test_a_read_only_directory_refuses_writes_only(files) -> None:
    append(files, "/d/a", b"1", create=True)
    fault = files.fail(errno.EROFS, "/d", WRITES)
    assert files.read_bytes("/d/a") == b"1"
    with pytest.raises(OSError, match="Read-only"):
        files.write_atomically("/d/b", b"")
    files.faults.remove(fault)
    files.write_atomically("/d/b", b"")


def test_a_slice_is_read_without_a_descriptor(files) -> None:
    append(files, "/d/a", b"0123456789", create=True)
    records = FileSlice(files.open("/d/a"), 3, 4)
    files.remove("/d/a")
    assert records.read() == b"3456"
    with pytest.raises(OSError, match="descriptor"):
        records.fileno()

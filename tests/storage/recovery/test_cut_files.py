"""What a recovery cuts off a log is kept beside it, for a bounded time, and can be looked at."""

from __future__ import annotations

import errno
import logging
import re
from pathlib import Path

import pytest

from odradek.log_tools.dump.log_dump import DumpOptions, dump_file
from odradek.protocol.records import build_batch
from odradek.storage.file_names import CUT_SUFFIX
from odradek.storage.io.files import RealFiles, StorageFile
from odradek.storage.recovery import cut_files

NOW_MS = 1_700_000_000_000
BATCH_BYTES = len(build_batch([(b"key", b"value", NOW_MS, [])]))
BATCHES_IN_SEGMENT = 3
CONFIG = {"segment_bytes": BATCHES_IN_SEGMENT * BATCH_BYTES}
COUNT = 10


@pytest.fixture
def folder(open_log, append) -> Path:
    """A partition with ten batches of one record in four segments, not closed."""
    log = open_log(**CONFIG)
    for _ in range(COUNT):
        append(log)
    return Path(log.directory)


def flip(folder: Path, offset: int) -> None:
    """Make a wrong bit in the records of the batch with that offset."""
    path = folder / f"{offset // BATCHES_IN_SEGMENT * BATCHES_IN_SEGMENT:020d}.log"
    data = bytearray(path.read_bytes())
    data[offset % BATCHES_IN_SEGMENT * BATCH_BYTES + 65] ^= 1
    path.write_bytes(data)


def logs_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def cuts_in(folder: Path) -> list[Path]:
    """In the order of the log."""
    found = folder.glob("*.cut")
    return sorted(found, key=lambda path: [int(part) for part in path.name.split(".")[0:3:2]])


@pytest.mark.parametrize("damaged", range(COUNT))
def test_every_byte_that_is_cut_off_is_kept(folder, open_log, damaged) -> None:
    flip(folder, damaged)
    before = logs_in(folder)
    log = open_log(**CONFIG)
    assert log.log_end_offset == damaged
    kept = b"".join(path.read_bytes() for path in cuts_in(folder))
    assert logs_in(folder) + kept == before
    assert log.size == damaged * BATCH_BYTES


@pytest.mark.parametrize("damaged", [0, 4, 9])
def test_the_log_says_what_was_cut_off_and_how_to_see_it(
    folder, open_log, damaged, caplog: pytest.LogCaptureFixture
) -> None:
    flip(folder, damaged)
    with caplog.at_level(logging.WARNING):
        open_log(**CONFIG)
    (message,) = [each for each in caplog.messages if "Cut off" in each]
    assert f"ends at offset {damaged} after a crash" in message
    assert f"offsets {damaged} to {COUNT - 1}." in message
    command = re.search(r"odradek log dump --records (.+)$", message)
    assert command is not None
    assert command[1].split() == [str(path) for path in cuts_in(folder)]


@pytest.mark.parametrize("damaged", [0, 4, 9])
def test_what_was_cut_off_can_be_dumped(folder, open_log, damaged) -> None:
    flip(folder, damaged)
    open_log(**CONFIG)
    entries = [entry for path in cuts_in(folder) for entry in dump_file(str(path), DumpOptions())]
    offsets = [entry.fields["base_offset"] for entry in entries if entry.kind == "batch"]
    assert offsets == list(range(damaged, COUNT))
    assert [entry.kind for entry in entries].count("damage") == 1


def test_segments_behind_a_gap_are_kept(folder, open_log) -> None:
    (folder / f"{3:020d}.log").unlink()
    log = open_log(**CONFIG)
    assert log.log_end_offset == 3
    assert [path.name.split(".")[0] for path in cuts_in(folder)] == [f"{6:020d}", f"{9:020d}"]


def test_zeros_are_no_bytes_to_keep(folder, open_log) -> None:
    with (folder / f"{9:020d}.log").open("ab") as file:
        file.write(bytes(5000))
    assert open_log(**CONFIG).log_end_offset == COUNT
    assert cuts_in(folder) == []


def test_later_starts_leave_what_was_kept_alone(folder, open_log) -> None:
    flip(folder, 4)
    open_log(**CONFIG).close()
    kept = {path: path.read_bytes() for path in cuts_in(folder)}
    for clean_shutdown in (True, False):
        log = open_log(**CONFIG, clean_shutdown=clean_shutdown, now_ms=NOW_MS + 1000)
        assert log.log_end_offset == 4
        assert {path: path.read_bytes() for path in cuts_in(folder)} == kept


def test_a_second_cut_at_the_same_place_takes_nothing_from_the_first(
    folder, open_log, append
) -> None:
    flip(folder, 9)
    log = open_log(**CONFIG)
    first = cuts_in(folder)
    append(log, b"other")
    data = bytearray((folder / f"{9:020d}.log").read_bytes())
    data[-1] ^= 1
    (folder / f"{9:020d}.log").write_bytes(data)
    open_log(**CONFIG, now_ms=NOW_MS + 1000)
    assert len(first) == 1
    assert set(first) < set(cuts_in(folder))
    assert len(cuts_in(folder)) == 2


def test_what_was_kept_for_a_week_goes(folder, open_log) -> None:
    flip(folder, 4)
    open_log(**CONFIG)
    open_log(**CONFIG, now_ms=NOW_MS + cut_files.CUT_MS_MAX)
    assert cuts_in(folder) != []
    open_log(**CONFIG, now_ms=NOW_MS + cut_files.CUT_MS_MAX + 1)
    assert cuts_in(folder) == []


def test_the_oldest_goes_where_there_is_too_much(
    folder, open_log, append, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_files, "CUT_BYTES_MAX", 2 * BATCH_BYTES)
    for number in range(4):
        flip(folder, 9)
        append(open_log(**CONFIG, now_ms=NOW_MS + number))
    open_log(**CONFIG, now_ms=NOW_MS + 4)
    times = sorted(int(path.name.split(".")[3]) - NOW_MS for path in cuts_in(folder))
    assert times == [2, 3]


def test_the_latest_cut_stays_however_large_it_is(
    folder, open_log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cut_files, "CUT_BYTES_MAX", 0)
    flip(folder, 0)
    open_log(**CONFIG)
    open_log(**CONFIG, now_ms=NOW_MS + 1)
    assert sum(path.stat().st_size for path in cuts_in(folder)) == COUNT * BATCH_BYTES


def test_copies_of_a_repair_are_their_makers(folder, open_log) -> None:
    copy = folder / f"{0:020d}.log.120.cut"
    copy.write_bytes(b"kept by log repair")
    open_log(**CONFIG, now_ms=NOW_MS + 2 * cut_files.CUT_MS_MAX)
    assert copy.exists()


class NoRoomForCopies(RealFiles):
    """A disk on which nothing that is cut off can be copied."""

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        if create and path.endswith(CUT_SUFFIX):
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().open(path, create=create)


def test_a_full_disk_keeps_no_log_from_being_opened(
    folder, open_log, caplog: pytest.LogCaptureFixture
) -> None:
    flip(folder, 4)
    log = open_log(**CONFIG, files=NoRoomForCopies())
    assert log.log_end_offset == 4
    assert [path.name.split(".")[0] for path in cuts_in(folder)] == [f"{6:020d}", f"{9:020d}"]
    assert any("cannot be kept" in message for message in caplog.messages)

"""What a start makes of the files that an interrupted swap left (Kafka's LogLoader)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.compaction import clean, make_manager, read_records

from odradek.protocol.records import build_batch
from odradek.runtime.clock import ManualClock
from odradek.storage import Log, LogConfig, TopicPartition, load_log

TABLE = TopicPartition("table", 0)
NOW_MS = 1_700_000_000_000
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.0)
SUFFIXES = (".log", ".index", ".timeindex")
FIRST, SECOND, ACTIVE = (f"{offset:020d}" for offset in (0, 2, 4))
NEW_OFFSETS, OLD_OFFSETS = [2, 3, 4], [0, 1, 2, 3, 4]


class Swap:
    """The folder of a log before a cleaning, and the files that the cleaning made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / TABLE.folder_name
        self.cleaned = folder / "cleaned"
        log = self.load()
        for number in range(5):
            batch = build_batch([(b"a", b"%d" % number, NOW_MS, []), (b"b", b"x", NOW_MS, [])][:1])
            if number == 3:
                batch = build_batch([(b"b", b"%d" % number, NOW_MS, [])])
            log.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
            log.flush_appends()
            if number % 2:
                log.roll(NOW_MS)
        log.close()
        before = folder / "before"
        shutil.copytree(self.folder, before)
        log = self.load()
        clean(make_manager(log, ManualClock(NOW_MS)), ManualClock(NOW_MS))
        assert [record.offset for record in read_records(log)] == NEW_OFFSETS
        self.folder.rename(self.cleaned)
        before.rename(self.folder)

    def load(self) -> Log:
        return load_log(str(self.folder), TABLE, CONFIG, now_ms=NOW_MS)

    def put(self, ending: str, *suffixes: str) -> None:
        """Have files of the cleaned segment in the folder, with `.cleaned` or `.swap`."""
        for suffix in suffixes:
            shutil.copy(self.cleaned / (FIRST + suffix), self.folder / (FIRST + suffix + ending))

    def rename(self, stem: str, *suffixes: str) -> None:
        """Have files of an old segment renamed as a swap does."""
        for suffix in suffixes:
            path = self.folder / (stem + suffix)
            path.rename(f"{path}.deleted")

    def offsets(self) -> list[int]:
        """The records' offsets after a start, which leaves no trace of the swap."""
        log = self.load()
        assert not [p for p in self.folder.iterdir() if p.suffix in (".cleaned", ".swap")]
        assert not list(self.folder.glob("*.deleted"))
        assert log.log_end_offset == 5
        bases = [segment.base_offset for segment in log.segments]
        assert bases == ([0, 4] if (self.folder / f"{SECOND}.log").exists() is False else [0, 2, 4])
        return [record.offset for record in read_records(log)]


@pytest.fixture
def swap(tmp_path: Path) -> Swap:
    return Swap(tmp_path)


def test_cleaned_files_are_removed(swap: Swap) -> None:
    swap.put(".cleaned", *SUFFIXES)
    assert swap.offsets() == OLD_OFFSETS


@pytest.mark.parametrize("renamed", [1, 2])
def test_swap_files_beside_cleaned_ones_are_removed(swap: Swap, renamed: int) -> None:
    swap.put(".swap", *SUFFIXES[:renamed])
    swap.put(".cleaned", *SUFFIXES[renamed:])
    assert swap.offsets() == OLD_OFFSETS


def test_a_swap_that_had_begun_is_completed(swap: Swap) -> None:
    swap.put(".swap", *SUFFIXES)
    assert swap.offsets() == NEW_OFFSETS


@pytest.mark.parametrize("stem", [FIRST, SECOND])
@pytest.mark.parametrize("renamed", [1, 2, 3])
def test_a_swap_interrupted_among_the_old_files_is_completed(
    swap: Swap, stem: str, renamed: int
) -> None:
    swap.put(".swap", *SUFFIXES)
    if stem == SECOND:
        swap.rename(FIRST, *SUFFIXES)
    swap.rename(stem, *SUFFIXES[:renamed])
    assert swap.offsets() == NEW_OFFSETS


@pytest.mark.parametrize("finished", [1, 2, 3])
def test_a_swap_interrupted_among_its_last_names_is_completed(swap: Swap, finished: int) -> None:
    swap.rename(FIRST, *SUFFIXES)
    swap.rename(SECOND, *SUFFIXES, ".snapshot")
    swap.put("", *SUFFIXES[:finished])
    swap.put(".swap", *SUFFIXES[finished:])
    assert swap.offsets() == NEW_OFFSETS


def test_a_completed_swap_takes_snapshots_and_aborted_transactions_of_the_old_along(
    swap: Swap,
) -> None:
    swap.put(".swap", *SUFFIXES)
    for name in (f"{FIRST}.txnindex", f"{SECOND}.txnindex", f"{FIRST}.snapshot"):
        (swap.folder / name).write_bytes(b"old")
    assert (swap.folder / f"{SECOND}.snapshot").exists()
    assert swap.offsets() == NEW_OFFSETS
    names = {path.name for path in swap.folder.iterdir()}
    assert not names & {f"{FIRST}.txnindex", f"{SECOND}.txnindex", f"{SECOND}.snapshot"}
    assert f"{ACTIVE}.snapshot" in names


def test_an_empty_swapped_segment_replaces_only_its_namesake(swap: Swap) -> None:
    for suffix in SUFFIXES:
        (swap.folder / f"{FIRST}{suffix}.swap").write_bytes(b"")
    assert swap.offsets() == [2, 3, 4]

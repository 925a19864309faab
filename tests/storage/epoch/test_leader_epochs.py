"""Which epoch begins and ends where, case by case as KIP-101 and KIP-279 tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.epoch.leader_epoch_file_cache import LeaderEpochFileCache
from odradek.storage.io.files import REAL_FILES


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "leader-epoch-checkpoint")


@pytest.fixture
def folder(path: str) -> str:
    return str(Path(path).parent)


@pytest.fixture
def cache(folder: str) -> LeaderEpochFileCache:
    """Epoch 2 from offset 0, 3 from 10, 7 from 20."""
    made = LeaderEpochFileCache(REAL_FILES, folder)
    for epoch, offset in ((2, 0), (3, 10), (7, 20)):
        made.assign(epoch, offset)
    made.flush()
    return made


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 0)),  # before the first known: that one's start
        (2, (2, 10)),
        (3, (3, 20)),
        (5, (3, 20)),
        (7, (7, 33)),  # the current one ends with the log
        (8, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_begins(cache, epoch: int, answer) -> None:
    assert cache.end_offset_for(epoch, log_end_offset=33) == answer


def test_nothing_is_known_of_an_empty_log(folder: str) -> None:
    cache = LeaderEpochFileCache(REAL_FILES, folder)
    assert cache.end_offset_for(0, log_end_offset=0) == (-1, -1)
    assert cache.latest_epoch == -1


def test_a_known_epoch_keeps_its_start(cache) -> None:
    cache.assign(7, 25)
    assert cache.entries[-1] == (7, 20)


def test_an_epoch_that_wrote_nothing_gives_way(cache) -> None:
    cache.assign(8, 20)
    assert cache.entries == [(2, 0), (3, 10), (8, 20)]


def test_a_known_epoch_keeps_its_start_behind_one_that_wrote_nothing(cache) -> None:
    cache.truncate_from_end(15)
    cache.assign(9, 15)
    cache.assign(3, 15)
    assert cache.entries == [(2, 0), (3, 10)]
    assert cache.latest_epoch == 3


def test_conflicting_epochs_are_removed(cache) -> None:
    cache.assign(5, 15)
    assert cache.entries == [(2, 0), (3, 10), (5, 15)]
    assert cache.latest_epoch == 5


@pytest.mark.parametrize(
    ("end_offset", "left"),
    [(21, [(2, 0), (3, 10), (7, 20)]), (20, [(2, 0), (3, 10)]), (1, [(2, 0)]), (0, [])],
)
def test_epochs_behind_the_end_go(cache, end_offset: int, left) -> None:
    cache.truncate_from_end(end_offset)
    assert cache.entries == left
    assert cache.latest_epoch == (left[-1][0] if left else -1)


@pytest.mark.parametrize(
    ("start_offset", "left"),
    [
        (0, [(2, 0), (3, 10), (7, 20)]),
        (5, [(2, 5), (3, 10), (7, 20)]),
        (10, [(3, 10), (7, 20)]),
        (30, [(7, 30)]),
    ],
)
def test_the_first_epoch_begins_with_the_log(cache, start_offset: int, left) -> None:
    cache.truncate_from_start(start_offset)
    assert cache.entries == left


@pytest.mark.parametrize(("offset", "epoch"), [(0, 2), (9, 2), (10, 3), (20, 7), (99, 7)])
def test_an_offset_belongs_to_an_epoch(cache, offset: int, epoch: int) -> None:
    assert cache.epoch_for(offset) == epoch


def test_the_file_is_in_kafkas_format_and_read_again(cache, folder: str, path: str) -> None:
    assert Path(path).read_text() == "0\n3\n2 0\n3 10\n7 20\n"
    assert LeaderEpochFileCache(REAL_FILES, folder).entries == cache.entries


@pytest.mark.parametrize(
    "text",
    [
        "x\n",
        "1\n0\n",
        "0\n2\n1 0\n",
        "0\n1\n1\n",
        "0\n1\na b\n",
        "0\n1\n-1 0\n",
        "0\n2\n2 5\n1 7\n",
        "0\n2\n1 7\n2 5\n",
    ],
)
def test_a_damaged_file_counts_as_missing(folder: str, path: str, text: str, caplog) -> None:
    Path(path).write_text(text)
    cache = LeaderEpochFileCache(REAL_FILES, folder)
    assert (cache.entries, cache.latest_epoch) == ([], -1)
    assert "leader-epoch-checkpoint" in caplog.text
    cache.assign(4, 10)
    cache.flush()
    assert Path(path).read_text() == "0\n1\n4 10\n"

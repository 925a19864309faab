"""Brokers crash, and come back on folders that were moved or copied meanwhile.

What they left in the metadata store lasts for a day here, if nobody sees that its holder is gone:
whoever waits for that is not ready in time.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.broker_cluster import METADATA_FILE, BrokerCluster
from support.cluster_topics import create

from odradek.common.errors import ErrorCode
from odradek.testing.process.broker_process import BrokerProcess

DAY_MS = 24 * 60 * 60 * 1000


def lengthen_sessions(folder: Path) -> int:
    """Have the sessions in a folder's store last for a day; returns how many there are."""
    with closing(sqlite3.connect(folder / METADATA_FILE)) as store, store:
        return store.execute("UPDATE sessions SET timeout_ms = ?", (DAY_MS,)).rowcount


@pytest.mark.short
def test_a_folder_that_was_moved_after_a_crash_starts_at_once(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "first") as broker:
        broker.kill()
    shutil.move(tmp_path / "first", tmp_path / "second")
    assert lengthen_sessions(tmp_path / "second") == 1
    with BrokerProcess(tmp_path / "second") as moved:
        assert moved.is_running


def test_a_folder_that_was_copied_starts_beside_the_broker_of_the_original(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "first") as original:
        shutil.copytree(tmp_path / "first", tmp_path / "second")
        assert lengthen_sessions(tmp_path / "second") == 1
        with BrokerProcess(tmp_path / "second") as copied:
            assert copied.is_running
            assert original.is_running


def test_a_cluster_that_was_killed_whole_comes_back_in_another_folder(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path / "first") as cluster:
        assert create(cluster, 1, "t", (1, 2, 3), (2, 3, 1), (3, 1, 2)) == ErrorCode.NONE
        before = cluster.settled()
        cluster.kill_all()
    shutil.move(tmp_path / "first", tmp_path / "second")
    assert lengthen_sessions(tmp_path / "second" / "shared") > 0  # of who was killed last
    with BrokerCluster(tmp_path / "second") as moved:
        assert set(moved.settled().topics) == set(before.topics)

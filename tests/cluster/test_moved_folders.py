"""Brokers crash, and come back on folders that were moved or copied meanwhile."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from support.broker_cluster import BROKER_IDS, BrokerCluster
from support.cluster_topics import create

from odradek.common.errors import ErrorCode
from odradek.metadata_store.store import SESSION_TIMEOUT_MS
from odradek.testing.process.broker_process import BrokerProcess

SESSION_SECONDS = SESSION_TIMEOUT_MS / 1000


@pytest.mark.short
def test_a_folder_that_was_moved_after_a_crash_starts_at_once(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "first") as broker:
        broker.kill()
    shutil.move(tmp_path / "first", tmp_path / "second")
    began = time.monotonic()
    with BrokerProcess(tmp_path / "second") as moved:
        assert moved.is_running
        assert time.monotonic() - began < SESSION_SECONDS


def test_a_folder_that_was_copied_starts_beside_the_broker_of_the_original(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "first") as original:
        shutil.copytree(tmp_path / "first", tmp_path / "second")
        with BrokerProcess(tmp_path / "second") as copied:
            assert copied.is_running
            assert original.is_running


def test_a_cluster_that_was_killed_whole_comes_back_in_another_folder(tmp_path: Path) -> None:
    with BrokerCluster(tmp_path / "first") as cluster:
        assert create(cluster, 1, "t", (1, 2, 3), (2, 3, 1), (3, 1, 2)) == ErrorCode.NONE
        before = cluster.settled()
        cluster.kill_all()
    shutil.move(tmp_path / "first", tmp_path / "second")
    began = time.monotonic()
    with BrokerCluster(tmp_path / "second") as moved:
        assert time.monotonic() - began < len(BROKER_IDS) * SESSION_SECONDS
        assert set(moved.settled().topics) == set(before.topics)

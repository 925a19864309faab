"""Clusters of three broker processes, on either metadata store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.broker_cluster import SESSION_TIMEOUT_MS, BrokerCluster

from odradek.tools.zookeeper_process import ZooKeeperProcess


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    """One server for all tests; each cluster has a part of the tree to itself."""
    if shutil.which("java") is None:
        pytest.skip("ZooKeeper needs Java")
    server = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=["a file", pytest.param("ZooKeeper", marks=pytest.mark.slow)])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerCluster]:
    """Three brokers that run, on the file and on ZooKeeper in turn.

    A module whose tests need every session but those that they end may set a longer
    `ZOOKEEPER_SESSION_MS` than is usual here.
    """
    server, settings = None, {}
    if request.param == "ZooKeeper":
        server = request.getfixturevalue("zookeeper")
        session_ms = getattr(request.module, "ZOOKEEPER_SESSION_MS", SESSION_TIMEOUT_MS)
        settings = {"zookeeper.session.timeout.ms": str(session_ms)}
    with BrokerCluster(_folder(tmp_path), server, settings) as running:
        yield running


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[Callable[..., BrokerCluster]]:
    """Start a cluster with settings of one's own."""
    with ExitStack() as stack:

        def start(zookeeper: ZooKeeperProcess | None = None, **settings: str) -> BrokerCluster:
            dotted = {name.replace("_", "."): value for name, value in settings.items()}
            return stack.enter_context(BrokerCluster(_folder(tmp_path), zookeeper, dotted))

        yield start


def _folder(tmp_path: Path) -> Path:
    """One whose name no other test's cluster has: it names the part of ZooKeeper's tree, too."""
    folder = tmp_path / tmp_path.name
    folder.mkdir()
    return folder

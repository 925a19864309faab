"""Three brokers under load lose any one of them, and links and sessions; nothing that was
acknowledged is lost, and nothing that was read changes.

What is checked is told by `support.replication_checker`. Every choice is made by a seed, which a
failure names; the timing is not, so that a seed gives the same faults in the same order, but not
the same moments. To run the same faults again, or others:

    ODRADEK_FAULTS_SEED=17 make test-slow ARGS="tests/cluster/test_replication_under_faults.py"

`ODRADEK_FAULTS_COUNT` changes how many there are for each kind of cluster.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from support.fault_run import FaultRun
from support.replicated_cluster import ASSIGNMENT, TOPIC, ReplicatedCluster, finish_and_check
from support.steady_load import SteadyLoad

from odradek.storage.file_names import CLEAN_SHUTDOWN_FILE
from odradek.testing.waiting import wait_until
from odradek.tools.zookeeper_process import ZooKeeperProcess

SEED = int(os.environ.get("ODRADEK_FAULTS_SEED", "1"))

COUNT = int(os.environ.get("ODRADEK_FAULTS_COUNT", "4"))

TEST_SECONDS_MAX = 800
SOAK_RUNS = 25
SOAK_COUNT = 20


def lose_nothing(
    folder: Path,
    count: int,
    seed: int,
    zookeeper: ZooKeeperProcess | None = None,
    *,
    in_one_process: bool = False,
) -> None:
    with ReplicatedCluster(
        folder / f"{folder.name}-cluster", zookeeper, in_one_process=in_one_process
    ) as cluster:
        cluster.create_topic(*ASSIGNMENT)
        with SteadyLoad(cluster.ports, TOPIC, len(ASSIGNMENT), seed=seed) as load:
            run = FaultRun(cluster, load, seed)
            try:
                run.run(count)
                checker = finish_and_check(cluster, load)
            except BaseException as trouble:
                trouble.add_note(f"{run.report()}\n{load.history.checker.report()}")
                trouble.add_note(cluster.logs())
                raise
    report = f"{run.report()}\n{checker.report()}"
    print(report)
    assert not checker.violations, f"{report}\n{cluster.logs()}"
    counts = checker.counts
    assert counts["acknowledged"] == counts["sent"] > 100 * count, report
    assert counts["read"] > counts["acknowledged"], report
    assert counts["kept"] == 3 * counts["acknowledged"], report
    assert not counts["sent again in another epoch"], report
    assert counts["listed"] > 3 * count, report
    assert not cluster.links.strangers, "who they are is not known, so their links cannot be cut"


@pytest.mark.timeout(TEST_SECONDS_MAX)
def test_nothing_is_lost_by_brokers_that_share_a_file(tmp_path: Path) -> None:
    lose_nothing(tmp_path, COUNT, SEED)


@pytest.mark.timeout(TEST_SECONDS_MAX)
def test_nothing_is_lost_by_brokers_on_zookeeper(
    tmp_path: Path, zookeeper: ZooKeeperProcess
) -> None:
    lose_nothing(tmp_path, COUNT, SEED, zookeeper)


@pytest.mark.timeout(TEST_SECONDS_MAX)
def test_nothing_is_lost_by_brokers_in_one_process(tmp_path: Path) -> None:
    lose_nothing(tmp_path, COUNT, SEED, in_one_process=True)


def test_a_broker_killed_inside_a_process_leaves_what_a_dead_process_leaves(
    tmp_path: Path,
) -> None:
    with ReplicatedCluster(tmp_path / "cluster", in_one_process=True) as cluster:
        cluster.create_topic(*ASSIGNMENT)
        victim = cluster.brokers[2]
        with socket.create_connection(("127.0.0.1", victim.port)) as connection:
            cluster.view(2)  # whoever was accepted later is served, so this one was accepted
            victim.kill()
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
        with pytest.raises(ConnectionRefusedError):
            cluster.view(2)
        folder = cluster.folder / "broker-2"
        assert not (folder / CLEAN_SHUTDOWN_FILE).exists()
        wait_until(lambda: all(2 not in each.isr for each in cluster.partitions().values()))
        assert "controlled shutdown" not in victim.log, "it left in good order"
        victim.start()
        assert f"recovering the logs in {folder}, not closed properly" in victim.log
        cluster.wait_in_sync()


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(SOAK_RUNS))
def test_nothing_is_lost_by_many_faults(
    tmp_path: Path, zookeeper: ZooKeeperProcess, number: int
) -> None:
    lose_nothing(
        tmp_path,
        SOAK_COUNT,
        SEED + number,
        zookeeper if number % 3 == 1 else None,
        in_one_process=number % 3 == 2,
    )

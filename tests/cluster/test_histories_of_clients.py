"""Java's, librdkafka's and aiokafka's producers under kills, freezes, cuts, clocks and full disks.

As in `test_replication_under_faults`, whose checker and faults these are: what was acknowledged is
kept once, in order and at its offset, whatever happens to brokers, links, clocks and disks. Every
choice is made by a seed, which is printed; to run the same faults again:

    ODRADEK_FAULTS_SEED=17 make test-slow ARGS="tests/cluster/test_histories_of_clients.py"
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import pytest
from support.clocked_cluster import ClockedCluster
from support.fault_run import OF_BROKERS, OF_MACHINES, FaultRun
from support.kafka_jars import command_of_java
from support.load_senders import AiokafkaSender, ConfluentSender, JavaSender
from support.replicated_cluster import ASSIGNMENT, TOPIC, finish_and_check
from support.steady_load import MakeSender, SteadyLoad

SEED = int(os.environ.get("ODRADEK_FAULTS_SEED", "1"))
SOAK_RUNS = 6
SOAK_COUNT = 11
TEST_SECONDS_MAX = 800
SOAK_SECONDS_MAX = 1800
ALL_KINDS = (*OF_BROKERS, *OF_MACHINES)
SHORT = (
    ("kill a leader", "fill a disk", "step a clock"),
    ("freeze a leader", "lose a disk", "cut a link"),
)
AGAIN = {"librdkafka", "fill a disk"}
"""Where a batch is refused and the next one is not, librdkafka begins another epoch, and sends in
it what another partition may have kept but has not acknowledged yet."""
SETTINGS = {"zookeeper.session.timeout.ms": "6000"}
"""So that a frozen leader is replaced soon."""


def java(folder: Path) -> MakeSender:
    return partial(
        JavaSender, java_command=command_of_java(), topic=TOPIC, errors=folder / "java-producer.log"
    )


CLIENTS: dict[str, Callable[[Path], MakeSender]] = {
    "java": java,
    "librdkafka": lambda folder: ConfluentSender,
    "aiokafka": lambda folder: AiokafkaSender,
}


def check_history(
    folder: Path, clients: Collection[str], kinds: Collection[str], count: int, seed: int
) -> None:
    """Run one history, and print its report."""
    with ClockedCluster(folder / "cluster", settings=SETTINGS) as cluster:
        cluster.create_topic(*ASSIGNMENT)
        senders = [CLIENTS[name](folder) for name in clients]
        with SteadyLoad(cluster.ports, TOPIC, len(ASSIGNMENT), seed=seed, senders=senders) as load:
            run = FaultRun(cluster, load, seed)
            try:
                run.run(count, kinds)
                checker = finish_and_check(cluster, load)
            except BaseException as trouble:
                trouble.add_note(f"{run.report()}\n{load.history.checker.report()}")
                trouble.add_note(cluster.logs())
                raise
    report = f"{', '.join(clients)}, {run.report()}\n{checker.report()}"
    print(report)
    assert not checker.violations, f"{report}\n{cluster.logs()}"
    counts = checker.counts
    assert counts["acknowledged"] == counts["sent"] > 50 * count, report
    assert counts["read"] > counts["acknowledged"], report
    again = counts["sent again in another epoch"]
    assert counts["kept"] == 3 * counts["acknowledged"] + again, report
    assert not again or {*clients, *kinds} >= AGAIN, report


@pytest.mark.slow
@pytest.mark.timeout(TEST_SECONDS_MAX)
@pytest.mark.parametrize("kinds", SHORT, ids=["disk and clock", "freeze and cut"])
def test_all_clients_keep_what_was_acknowledged(tmp_path: Path, kinds: Sequence[str]) -> None:
    check_history(tmp_path, CLIENTS, kinds, len(kinds), SEED)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS_MAX)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("number", range(SOAK_RUNS))
def test_each_client_keeps_what_was_acknowledged(tmp_path: Path, client: str, number: int) -> None:
    check_history(tmp_path, [client], ALL_KINDS, SOAK_COUNT, SEED + number)

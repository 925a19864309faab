"""Each record of the input has one output, whoever is killed: the worker, or any broker it needs.

What must hold is told by `support.exactly_once_checker`. Every choice is made by a seed, which a
failure names:

    ODRADEK_FAULTS_SEED=17 make test-slow ARGS="tests/cluster/test_exactly_once.py"
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.cluster_topics import GROUP, TRANSACTION, coordinator, create_topics
from support.exactly_once import FollowingReader, InputLoad, Worker, check_pipeline
from support.exactly_once_checker import ExactlyOnceChecker, Place
from support.exactly_once_worker import Record, Settings, Step, value_of
from support.replicated_cluster import ReplicatedCluster

from odradek.tools.zookeeper_process import ZooKeeperProcess

SEED = int(os.environ.get("ODRADEK_FAULTS_SEED", "1"))

COUNT = int(os.environ.get("ODRADEK_FAULTS_COUNT", "4"))

TEST_SECONDS_MAX = 800
SOAK_RUNS = 10
SOAK_COUNT = 20
SOURCE, TARGET = "orders", "bills"
PARTITIONS = 3
SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
}

STEPS = (Step.WROTE, Step.SENT_OFFSETS, Step.COMMITTED)


class PipelineFaults:
    """Faults of a pipeline.

    Args:
        cluster: it runs, with the topics made.
        settings: of the worker.
        load: of the input.
        worker: the one that works, and those that follow it.
        seed: decides everything that chance decides here.
    """

    def __init__(
        self,
        cluster: ReplicatedCluster,
        settings: Settings,
        load: InputLoad,
        worker: Worker,
        seed: int,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._load = load
        self._worker = worker
        self._seed = seed
        self._rng = random.Random(seed)
        self._said: list[str] = []
        self._kinds: dict[str, Callable[[], int | None]] = {
            "the worker": lambda: None,
            "the transaction coordinator": lambda: coordinator(
                cluster, TRANSACTION, settings.transactional_id
            ),
            "the group coordinator": lambda: coordinator(cluster, GROUP, settings.group),
            "the output's leader": self._leader,
        }

    def run(self, count: int) -> None:
        """So many faults, of all kinds in turn, each turn in an order of its own."""
        order: list[str] = []
        self._worker.wait_reached(self._load.wait_more())
        for _ in range(count):
            if not order:
                order = self._rng.sample(list(self._kinds), len(self._kinds))
            self._happen(order.pop())

    def report(self) -> str:
        """What happened, and by which seed."""
        return "\n".join([f"seed {self._seed}", *self._said, str(dict(self._worker.steps))])

    def _happen(self, kind: str) -> None:
        step = self._rng.choice(STEPS)
        victim = self._kinds[kind]()
        self._worker.wait_step(step)
        self._said.append(f"{kind} ({victim}) is killed after {step.value}")
        if victim is None:
            self._worker.kill()
        else:
            self._cluster.brokers[victim].kill()
        began = time.monotonic()
        self._worker.wait_reached(self._load.wait_more())
        self._said[-1] += f"; silent for {time.monotonic() - began:.2f} s"
        if victim is not None:
            self._cluster.brokers[victim].start()
            self._cluster.wait_in_sync()

    def _leader(self) -> int:
        partitions = self._cluster.settled_tree().topics[self._settings.target]
        return partitions[self._rng.choice(sorted(partitions))].leader


def run_pipeline(
    folder: Path,
    count: int,
    seed: int,
    client: str = "confluent-kafka",
    *,
    zookeeper: ZooKeeperProcess | None = None,
    fault: str = "",
) -> ExactlyOnceChecker:
    place = folder / f"{folder.name}-cluster"
    with ReplicatedCluster(place, zookeeper, SETTINGS, fault) as cluster:
        create_topics(cluster, SOURCE, TARGET, partitions=PARTITIONS)
        bootstrap = [f"127.0.0.1:{port}" for port in cluster.ports.values()]
        worker_settings = Settings(
            client, bootstrap, SOURCE, TARGET, "billing", transactional_id="biller"
        )
        follower = FollowingReader(bootstrap, TARGET, PARTITIONS)
        with (
            InputLoad(bootstrap, SOURCE, PARTITIONS) as load,
            Worker(worker_settings, folder / "worker.log") as worker,
        ):
            faults = PipelineFaults(cluster, worker_settings, load, worker, seed)
            try:
                faults.run(count)
                worker.wait_step(Step.DOOMED)
                ends = load.stop()
                worker.wait_reached(ends)
                worker.stop()
                checker = check_pipeline(bootstrap, worker_settings, PARTITIONS, ends, follower)
            except BaseException as trouble:
                trouble.add_note(f"{faults.report()}\n{worker.log_tail()}")
                trouble.add_note(cluster.logs())
                raise
            finally:
                follower.stop()
            print(faults.report())
            if not fault:
                report = f"{checker.report()}\n{faults.report()}\n{cluster.logs()}"
                assert not checker.violations, report
    return checker


@pytest.mark.timeout(TEST_SECONDS_MAX)
def test_each_input_has_one_output_whoever_is_killed(tmp_path: Path) -> None:
    run_pipeline(tmp_path, COUNT, SEED)


@pytest.mark.timeout(TEST_SECONDS_MAX)
def test_each_input_has_one_output_of_another_client(tmp_path: Path) -> None:
    run_pipeline(tmp_path, COUNT, SEED, "kafka-python")


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("number", range(SOAK_RUNS))
def test_each_input_has_one_output_after_many_faults(
    tmp_path: Path, zookeeper: ZooKeeperProcess, number: int
) -> None:
    run_pipeline(
        tmp_path,
        SOAK_COUNT,
        SEED + number,
        ("confluent-kafka", "kafka-python")[number % 2],
        zookeeper=zookeeper if number % 5 > 2 else None,
    )


# --- Those who check are checked ----------------------------------------------------------------


@pytest.mark.timeout(TEST_SECONDS_MAX)
def test_aborted_records_that_leak_are_found(tmp_path: Path) -> None:
    checker = run_pipeline(tmp_path, 0, SEED, fault="leaking-aborts")
    assert {"leak", "duplicate"} <= checker.kinds(), checker.report()


INPUTS = {(0, 0): b"a", (0, 1): b"b", (1, 0): b"c"}


def outputs(*records: Record, doomed: tuple[int, ...] = ()) -> dict[Place, bytes]:
    ends = dict.fromkeys(range(PARTITIONS), 0)
    read: dict[Place, bytes] = {}
    for number, record in enumerate(records):
        place = record.partition, ends[record.partition]
        read[place] = value_of(record, number, doomed=number in doomed)
        ends[record.partition] += 1
    return read


A, B, C = (Record(*place, value) for place, value in INPUTS.items())


@pytest.mark.short
@pytest.mark.parametrize(
    ("read", "kinds"),
    [
        pytest.param(outputs(A, B, C), set(), id="sound"),
        pytest.param(outputs(A, B, C, C), {"duplicate"}, id="a duplicate"),
        pytest.param(outputs(A, C), {"lost"}, id="a loss"),
        pytest.param(outputs(A, B, C, doomed=(1,)), {"leak"}, id="an aborted record"),
        pytest.param(outputs(B, A, C), {"order"}, id="the wrong order"),
        pytest.param(outputs(A, B, C._replace(value=b"x")), {"stranger"}, id="another value"),
        pytest.param(outputs(A, B, C, Record(2, 9, b"d")), {"stranger"}, id="no such input"),
    ],
)
def test_what_exactly_once_excludes_is_found(read: dict[Place, bytes], kinds: set[str]) -> None:
    checker = ExactlyOnceChecker(INPUTS)
    checker.committed("a reader", read)
    assert checker.kinds() == kinds, checker.report()


@pytest.mark.short
def test_two_readers_that_see_different_records_are_found() -> None:
    checker = ExactlyOnceChecker(INPUTS)
    checker.agree("one", outputs(A, B, C), "another", outputs(A, B))
    assert checker.kinds() == {"changed"}


@pytest.mark.short
def test_a_read_uncommitted_reader_that_sees_no_more_is_found() -> None:
    checker = ExactlyOnceChecker(INPUTS)
    committed = outputs(A, B, C)
    checker.uncommitted(committed, outputs(A, B, C, C))
    assert not checker.violations
    checker.uncommitted(committed, committed)
    assert checker.kinds() == {"changed"}

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
import random
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import NamedTuple

import pytest
from support.broker_cluster import BROKER_IDS, SETTLE_SECONDS_MAX
from support.cut_links import Cut
from support.load_history import SILENT_SECONDS_MAX, Mark
from support.load_senders import METADATA_MS_MAX
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
AHEAD_SECONDS = 0.3


class Fault(NamedTuple):
    """What happened, and how long acknowledgements were away."""

    kind: str
    text: str
    silent_seconds: float

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}; silent for {self.silent_seconds:.2f} s"


class FaultRun:
    """Faults of a cluster.

    Args:
        cluster: it runs, with the topic made.
        load: it runs.
        seed: decides everything that chance decides here.

    Attributes:
        faults: what happened so far.
    """

    def __init__(self, cluster: ReplicatedCluster, load: SteadyLoad, seed: int) -> None:
        self.faults: list[Fault] = []
        self._cluster = cluster
        self._load = load
        self._silent_seconds = 0.0
        self._struck: tuple[float, Mark] | None = None
        self._seed = seed
        self._rng = random.Random(seed)
        self._kinds: dict[str, Callable[[], str]] = {
            "kill a leader": self._kill_leader,
            "kill a leader ahead of its followers": self._kill_leader_ahead,
            "kill the controller": self._kill_controller,
            "freeze a follower": self._freeze_follower,
            "cut a link": self._cut_link,
            "expire a session": self._expire_session,
            "restart all": self._restart_all,
        }

    def run(self, count: int, only: Collection[str] = ()) -> None:
        """So many faults, of all kinds in turn, each turn in an order of its own.

        A violation ends it: what comes after could only make it harder to understand.
        """
        kinds = [kind for kind in self._kinds if not only or kind in only]
        order: list[str] = []
        self._await_acknowledgements("before the first fault")
        for _ in range(count):
            if not order:
                order = self._rng.sample(kinds, len(kinds))
            self._happen(order.pop())
            if self._load.history.has_violations():
                break

    def report(self) -> str:
        """What happened, and by which seed."""
        return "\n".join([f"seed {self._seed}", *map(str, self.faults)])

    def _happen(self, kind: str) -> None:
        self._silent_seconds = 0.0
        text = self._kinds[kind]()
        self._await_acknowledgements(f"after {kind}: {text}")
        self._cluster.wait_in_sync()
        self.faults.append(Fault(kind, text, self._silent_seconds))

    def _strike(self) -> None:
        """Something breaks now: from here on silence counts, and records are new."""
        self._struck = time.monotonic(), self._load.history.mark()

    def _await_acknowledgements(self, when: str, partitions: Collection[int] | None = None) -> None:
        """Wait for those of records sent since the last strike, or from now on.

        Args:
            when: for messages.
            partitions: where; None: everywhere.
        """
        history = self._load.history
        began, mark = self._struck or (time.monotonic(), history.mark())
        self._struck = None
        where = self._load.partitions if partitions is None else partitions
        missing = history.wait_acknowledged(mark, where)
        if missing:
            text = f"no acknowledgements for {SILENT_SECONDS_MAX} s of {missing} {when}"
            with history.telling() as checker:
                checker.silent(text)
        self._silent_seconds = max(self._silent_seconds, time.monotonic() - began)

    # -- what happens -------------------------------------------------------------------

    def _kill_leader(self) -> str:
        partition, leader = self._some_leader()
        return self._kill(leader, f"broker {leader}, the leader of {partition}")

    def _kill_leader_ahead(self) -> str:
        """Its followers are frozen, so that it has records that nobody else gets."""
        partition, leader = self._some_leader()
        followers = [each for each in BROKER_IDS if each != leader]
        for follower in followers:
            self._cluster.pause(follower)
        self._load.history.trouble_within(AHEAD_SECONDS)
        self._cluster.brokers[leader].kill()
        self._strike()
        for follower in followers:
            self._cluster.resume(follower)
        return self._revive(leader, f"broker {leader}, the leader of {partition}")

    def _kill_controller(self) -> str:
        controller = self._cluster.settled_tree().controller
        return self._kill(controller, f"broker {controller}")

    def _kill(self, broker_id: int, text: str) -> str:
        self._strike()
        self._cluster.brokers[broker_id].kill()
        return self._revive(broker_id, text)

    def _revive(self, broker_id: int, text: str) -> str:
        self._await_acknowledgements(f"since a broker was killed: {text}")
        self._cluster.brokers[broker_id].start()
        return text

    def _freeze_follower(self) -> str:
        """Past the lag time, so that it leaves the ISR, but not its session."""
        partitions = self._cluster.partitions()
        led = Counter(each.leader for each in partitions.values())
        follower = min(BROKER_IDS, key=lambda each: (led[each], self._rng.random()))
        others = [index for index, each in partitions.items() if each.leader != follower]
        text = f"broker {follower}, which follows in {others}"
        self._strike()
        self._cluster.pause(follower)
        try:
            self._await_acknowledgements(f"with a follower frozen: {text}", others)
            wait_until(
                lambda: all(
                    follower not in each.isr
                    for index, each in self._cluster.partitions().items()
                    if index in others
                ),
                SETTLE_SECONDS_MAX,
                "a frozen follower stays in the ISR",
            )
        finally:
            self._cluster.resume(follower)
        return text

    def _cut_link(self) -> str:
        pair = self._rng.sample(BROKER_IDS, 2)
        how = self._rng.choice(list(Cut))
        text = f"between {pair[0]} and {pair[1]}, {how.value}"
        self._strike()
        self._cluster.links.cut(pair, how)
        try:
            self._await_acknowledgements(f"with a link cut: {text}")
        finally:
            self._cluster.links.heal(pair)
        return text

    def _expire_session(self) -> str:
        partition, leader = self._some_leader()
        text = f"of broker {leader}, the leader of {partition}"
        if self._cluster.zookeeper is None:
            former = self._cluster.registration(leader)
            self._strike()
            self._cluster.end_lease(leader)
            wait_until(
                lambda: self._cluster.registration(leader) not in (None, former),
                otherwise="a broker whose session has ended does not register again",
            )
            return text
        self._strike()
        # ZooKeeper ends sessions of those only that are silent; others lead when it wakes up.
        self._cluster.pause(leader)
        try:
            self._await_acknowledgements(f"with a session expired: {text}")
        finally:
            self._cluster.resume(leader)
        return text

    def _restart_all(self) -> str:
        order = self._rng.sample(BROKER_IDS, len(BROKER_IDS))
        self._strike()
        self._cluster.kill_all()
        self._cluster.start_together(*order)
        self._await_acknowledgements("after all brokers were restarted")
        # A client that has asked the first of them knows of no other; kafka-python, as Java's
        # clients before KIP-899, is lost if that one dies before it has asked again.
        self._cluster.wait_in_sync()
        self._load.history.trouble_within(2 * METADATA_MS_MAX / 1000)
        return f"killed together and started in the order {order}"

    def _some_leader(self) -> tuple[int, int]:
        """A partition, and who leads it."""
        partition = self._rng.choice(self._load.partitions)
        return partition, self._cluster.partitions()[partition].leader


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

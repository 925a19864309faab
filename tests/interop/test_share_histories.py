"""Seeded histories of share groups: three clients, brokers and members that fail, nothing lost.

Each seed says which clients are members of a group of its own, each alone or all together, and
what fails while they read: a broker is killed, stopped in order (so that leaders and coordinators
move) or frozen, a member's process is killed. In the end every record was delivered and is done
with, none came again after its acceptance was confirmed, and none more often than the limit.

What no client can see, such as two owners of one lock, `tools/simulation/share` looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from support.broker_cluster import BrokerCluster
from support.share_members import JAVA_CLASS, LibrdkafkaMember, ShareHistory, ShareMembers
from support.share_work import SHARE_SETTINGS, ShareWork

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SEEDS, SOAK_SEEDS = 20, 500
CLIENTS = (("java",), ("go",), ("librdkafka",), ("java", "go", "librdkafka"))
ROUNDS = 2
VALUES = 40
UNDER_WAY = 30
"""So many records may not have been delivered yet when something fails."""
SETTINGS = {
    **SHARE_SETTINGS,
    # Records of who was killed go to others soon.
    "group.share.min.session.timeout.ms": "4000",
    "group.share.session.timeout.ms": "4000",
    "group.share.min.record.lock.duration.ms": "3000",
    "group.share.record.lock.duration.ms": "3000",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """Three brokers that all seeds share."""
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), settings=SETTINGS) as cluster:
        yield cluster


class Members:
    """The members of one group: the processes of Java's and of Go's, and librdkafka's threads.

    Args:
        stack: ends them.
        programs: the command of each client that is a process.
        work: what they read.
        errors: a folder for what the processes say of themselves.
    """

    def __init__(
        self,
        stack: ExitStack,
        programs: dict[str, Sequence[str]],
        work: ShareWork,
        errors: Path,
    ) -> None:
        self.history = ShareHistory()
        self.processes: dict[str, ShareMembers] = {}
        self._stack = stack
        self._programs = programs
        self._work = work
        self._errors = errors
        self._joined = 0

    def join(self, client: str) -> None:
        """Have one more member join."""
        self._joined += 1
        name = f"{client}-{self._joined}"
        where = (self._work.bootstrap, self._work.topic, self._work.group)
        if client == "librdkafka":
            self._stack.enter_context(LibrdkafkaMember(name, self.history, *where))
            return
        process = ShareMembers(
            self._programs[client], self.history, *where, self._errors / f"{name}.log"
        )
        self.processes[name] = self._stack.enter_context(process)
        process.join(name)

    def kill_one(self, random: Random) -> None:
        """End a member's process without a word, and have another join in its place."""
        name = random.choice(sorted(self.processes))
        self.processes.pop(name).kill()
        self.history.killed(name)
        self.join(name.partition("-")[0])

    def leave(self) -> None:
        """Have all those that are processes leave."""
        for name, process in self.processes.items():
            process.leave(name)


class Stage(NamedTuple):
    """What something fails on."""

    random: Random
    cluster: BrokerCluster
    members: Members
    work: ShareWork


def kill_broker(stage: Stage) -> None:
    """With what it has not replicated, and without a word."""
    broker = stage.cluster.brokers[stage.random.choice(stage.cluster.running)]
    broker.kill()
    stage.work.produce("meanwhile")
    broker.start()


def stop_broker(stage: Stage) -> None:
    """In order: what it leads and coordinates moves to others."""
    broker = stage.cluster.brokers[stage.random.choice(stage.cluster.running)]
    broker.stop()
    stage.work.produce("meanwhile")
    broker.start()


def freeze_broker(stage: Stage) -> None:
    """Until the others have gone on without it; then it goes on as if it were what it was."""
    broker_id = stage.random.choice(stage.cluster.running)
    stage.cluster.pause(broker_id)
    try:
        stage.work.produce("meanwhile")
    finally:
        stage.cluster.resume(broker_id)


def kill_member(stage: Stage) -> None:
    """What it had not acknowledged goes to others, when its locks have ended."""
    stage.members.kill_one(stage.random)


FAULTS: tuple[Callable[[Stage], None], ...] = (kill_broker, stop_broker, freeze_broker, kill_member)


@pytest.mark.parametrize(
    "seed",
    [
        *range(SEEDS),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(SEEDS, SOAK_SEEDS)),
    ],
)
def test_nothing_is_lost_or_done_twice(
    seed: int,
    cluster: BrokerCluster,
    java_command: list[str],
    go_program: str,
    java: Callable[..., str],
    tmp_path: Path,
) -> None:
    random = Random(seed)
    programs = {"java": [*java_command, JAVA_CLASS], "go": [go_program, "share"]}
    work = ShareWork(",".join(cluster.bootstrap), f"work-{seed}", f"workers-{seed}")
    work.prepare(replicas=3)
    with ExitStack() as stack:
        members = Members(stack, programs, work, tmp_path)
        stage = Stage(random, cluster, members, work)
        for client in CLIENTS[seed % len(CLIENTS)]:
            members.join(client)
        faults = FAULTS if members.processes else FAULTS[:-1]
        for _ in range(ROUNDS):
            work.produce(*(f"v{len(work.produced) + number}" for number in range(VALUES)))
            work.wait_for_values(members.history, len(work.produced) - UNDER_WAY)
            random.choice(faults)(stage)
            cluster.wait_in_sync(work.topic)

        work.wait_until_done(members.history, java)
        members.leave()
        members.history.check()
    work.delete()

"""Seeded histories of share groups: three clients, brokers and members that fail, nothing lost.

Each seed says which clients are members of a group of its own, each alone or all together, and
what fails while they read: a broker is killed, stopped in order (so that leaders and coordinators
move) or frozen, a member's process is killed. In the end every record was delivered and is done
with, which was confirmed as far as somebody lived to hear of it; none came again after that, and
none more often than the limit.

What no client can see, such as two owners of one lock, `tools/simulation/share` looks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest
from support.broker_cluster import BrokerCluster, leaders
from support.share_members import JAVA_CLASS, LibrdkafkaMember, ShareHistory, ShareMembers
from support.share_work import SHARE_SETTINGS, ShareWork

from odradek.common.internal_topics import SHARE_GROUP_STATE
from odradek.testing.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

SEEDS, SOAK_SEEDS = 20, 500
"""The first ones have one fault each, the others two."""
CLIENTS = (("java",), ("go",), ("librdkafka",), ("java", "go", "librdkafka"))
VALUES = 40
LOG_CHARACTERS = 4000
KINDS = ("accept",) * 8 + ("release", "reject")
"""What a member does with a record."""
NOBODY = -1
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
    victim = choose_leader(stage)
    stage.cluster.brokers[victim].kill()
    go_on_without(stage, victim)
    stage.cluster.brokers[victim].start()


def stop_broker(stage: Stage) -> None:
    """In order: what it leads and coordinates moves to others."""
    victim = choose_leader(stage)
    stage.cluster.brokers[victim].stop()
    go_on_without(stage, victim)
    stage.cluster.brokers[victim].start()


def freeze_broker(stage: Stage) -> None:
    """Until the others have gone on without it; then it goes on as if it were what it was."""
    victim = choose_leader(stage)
    stage.cluster.pause(victim)
    try:
        go_on_without(stage, victim)
    finally:
        stage.members.history.leader_woke = True
        stage.cluster.resume(victim)


def choose_leader(stage: Stage) -> int:
    """A broker to fail that leads a partition of the topic, or coordinates share partitions."""
    stage.members.history.broker_failed = True
    view = stage.cluster.view(stage.cluster.running[0])
    topic = stage.random.choice([stage.work.topic, SHARE_GROUP_STATE])
    return stage.random.choice(sorted(leaders(view, topic)))


def go_on_without(stage: Stage, victim: int) -> None:
    """Wait until others lead and coordinate what it did, and write to all partitions."""
    other = next(each for each in stage.cluster.running if each != victim)

    def has_moved() -> bool:
        view = stage.cluster.view(other)
        topics = (stage.work.topic, SHARE_GROUP_STATE)
        return not any({victim, NOBODY} & leaders(view, topic) for topic in topics)

    wait_until(has_moved, otherwise=f"broker {victim} leads still")
    stage.work.produce_to_each(f"meanwhile-{len(stage.work.produced)}")


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
        for _ in range(1 if seed < SEEDS else 2):
            first = len(work.produced)
            kinds = (random.choice(KINDS) for _ in range(VALUES))
            work.produce(*(f"{kind}-{first + number}" for number, kind in enumerate(kinds)))
            work.wait_for_values(members.history, len(work.produced) - UNDER_WAY)
            random.choice(faults)(stage)
            cluster.wait_in_sync(work.topic)

        work.wait_until_done(members.history, java)
        members.leave()
        members.history.check_all_done(work.produced)
    work.delete()
    logs = "".join(broker.log for broker in cluster.brokers.values())
    assert "Traceback" not in logs, logs[logs.index("Traceback") :][:LOG_CHARACTERS]

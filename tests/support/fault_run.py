"""Faults of a cluster under load, chosen by a seed, and what they cost."""

from __future__ import annotations

import random
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import NamedTuple

from odradek.testing.waiting import wait_until

from .broker_cluster import BROKER_IDS, SETTLE_SECONDS_MAX
from .clocked_cluster import ClockedCluster
from .cut_links import Cut
from .load_history import SILENT_SECONDS_MAX, Mark
from .load_senders import METADATA_MS_MAX
from .replicated_cluster import TOPIC, ReplicatedCluster
from .steady_load import SteadyLoad
from .stepped_clock import HOUR_S

AHEAD_SECONDS = 0.3
CLOCK_SECONDS = 3.0
"""So long a stepped clock is watched."""
FULL_SECONDS = 3.0

OF_BROKERS = (
    "kill a leader",
    "kill a leader ahead of its followers",
    "kill the controller",
    "freeze a follower",
    "cut a link",
    "expire a session",
    "restart all",
)
"""The kinds of faults that need nothing of the machine."""

OF_MACHINES = ("freeze a leader", "step a clock", "fill a disk", "lose a disk")
"""Those of clocks, disks and processes; the brokers are processes, each with a clock of its own."""


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
            "freeze a leader": self._freeze_leader,
            "step a clock": self._step_clock,
            "fill a disk": self._fill_disk,
            "lose a disk": self._lose_disk,
        }

    def run(self, count: int, only: Collection[str] = OF_BROKERS) -> None:
        """So many faults, of all kinds in turn, each turn in an order of its own.

        A violation ends it: what comes after could only make it harder to understand.
        """
        kinds = [kind for kind in self._kinds if kind in only]
        order: list[str] = []
        wait_until(self._load.is_sending, SETTLE_SECONDS_MAX, "a client did not begin to send")
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

    def _freeze_leader(self) -> str:
        """Past its session: others lead when it wakes up, and it does not know."""
        partition, leader = self._some_leader()
        text = f"broker {leader}, the leader of {partition}"
        self._strike()
        self._cluster.pause(leader)
        try:
            self._await_acknowledgements(
                f"with a leader frozen: {text}", self._led_by_others(leader)
            )
            wait_until(
                lambda: leader not in {each.leader for each in self._cluster.partitions().values()},
                SETTLE_SECONDS_MAX,
                "a frozen broker leads for ever",
            )
        finally:
            self._cluster.resume(leader)
        return text

    def _led_by_others(self, broker_id: int) -> list[int]:
        partitions = self._cluster.partitions()
        return [index for index, each in partitions.items() if each.leader != broker_id]

    def _step_clock(self) -> str:
        """Forwards or backwards; the next step of that broker goes from there."""
        assert isinstance(self._cluster, ClockedCluster)
        broker_id = self._rng.choice(BROKER_IDS)
        step = self._rng.choice((-HOUR_S, HOUR_S))
        self._strike()
        now = self._cluster.step_clock(broker_id, step)
        self._load.history.trouble_within(CLOCK_SECONDS)
        return f"of broker {broker_id} by {step:+} s, to {now:+} s"

    def _fill_disk(self) -> str:
        """No file of a broker may grow beyond a partition that it leads; then there is space.

        That meets the store of metadata as well, as it would on the same disk.
        """
        partition, leader = self._some_leader()
        folder = self._cluster.folder / f"broker-{leader}"
        limit = max(path.stat().st_size for path in folder.glob(f"{TOPIC}-{partition}/*.log"))
        pid = self._cluster.brokers[leader].pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        self._strike()
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
        self._load.history.trouble_within(FULL_SECONDS)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        return f"of broker {leader}, the leader of {partition}, at {limit} bytes"

    def _lose_disk(self) -> str:
        """A broker dies, and comes back with nothing when the others do not count on it."""
        partition, lost = self._some_leader()
        self._strike()
        self._cluster.brokers[lost].kill()
        text = f"of broker {lost}, the leader of {partition}"
        self._await_acknowledgements(f"since a broker was killed: {text}")
        wait_until(
            lambda: all(lost not in each.isr for each in self._cluster.partitions().values()),
            SETTLE_SECONDS_MAX,
            "a dead follower stays in the ISR",
        )
        shutil.rmtree(self._cluster.folder / f"broker-{lost}")
        self._cluster.brokers[lost].start()
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

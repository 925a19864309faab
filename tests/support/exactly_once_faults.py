"""Faults of a pipeline on three brokers, one after another, as a seed decides.

Each strikes right after the worker has said where in a transaction it stands. A worker must then
commit input that was written after the fault; only then the broker that was killed returns, and
the next fault waits until all replicas are in sync.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from .cluster_topics import GROUP, TRANSACTION, coordinator
from .exactly_once import InputLoad, Worker
from .exactly_once_worker import Settings, Step
from .replicated_cluster import ReplicatedCluster

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
        self._chance = random.Random(seed)
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
                order = self._chance.sample(list(self._kinds), len(self._kinds))
            self._happen(order.pop())

    def report(self) -> str:
        """What happened, and by which seed."""
        return "\n".join([f"seed {self._seed}", *self._said, str(dict(self._worker.steps))])

    def _happen(self, kind: str) -> None:
        step = self._chance.choice(STEPS)
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
        return partitions[self._chance.choice(sorted(partitions))].leader

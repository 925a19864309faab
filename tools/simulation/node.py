"""A broker's machine: one life of its process after another, on one disk.

The process is the product's `Broker`, put together by the product's own `make_broker`. What is
simulated is around it: clock, disk, network, and the session with the metadata store.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from ...broker.broker import Broker
from ...broker.network.connection import Connection
from ...broker.start import Environment, make_broker
from ...common.topic_partition import TopicPartition
from ...config.broker_config import BrokerConfig
from ...controller.registration import BrokerIdTaken
from ...metadata_store.errors import MetadataStoreError
from ...replication.partition.partition import Partition
from ...runtime import waiting
from ...runtime.descriptors import DescriptorPlan
from ...storage.errors import LogDirectoryError
from .disks.memory_files import MemoryFiles
from .kernel import START_MS, CancelScope, Kernel, Nursery, Process
from .network import Network, opener
from .server import SimulatedServer
from .store import SimulatedSession, StoreServer

DESCRIPTORS = DescriptorPlan(limit=4096, used=16, reserve=64, segments=1000, connections=1000)


class NodeClock:
    """A broker's own clocks: they run fast or slow, and the wall clock may be set wrong, too.

    Args:
        kernel: the time that passes.

    Attributes:
        ahead_ms: how wrong its wall time was set.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.ahead_ms = 0
        self._drift_permille = 0
        self._drifts_from_us = 0
        self._drifted_us = 0

    def drift(self, permille: int) -> None:
        """Run fast, or slow if it is negative, by so much from now on."""
        self._drifted_us = self._drifted_by_now()
        self._drifts_from_us = self._kernel.now_us
        self._drift_permille = permille

    def now_ms(self) -> int:
        """Wall time in milliseconds since the epoch."""
        return START_MS + self.monotonic_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary moment; never goes back."""
        drifted_us = self._drifted_by_now() if self._drift_permille else self._drifted_us
        return (self._kernel.now_us + drifted_us) // 1000

    def _drifted_by_now(self) -> int:
        passed_us = self._kernel.now_us - self._drifts_from_us
        return self._drifted_us + passed_us * self._drift_permille // 1000


class Node:
    """One broker's machine.

    Args:
        broker_id: of its broker.
        kernel, network, store: of the simulation.
        rng: decides everything random.
        config: of the broker.
        on_end: called when a process has ended by itself, with why.
        check: looks at it after each of its events.

    Attributes:
        process: the present life, or the last.
        broker: of that life, once it is put together; None: it is not yet, or no more.
        life: counts processes.
        is_stopping: whether it was told to end in good order.
    """

    def __init__(
        self,
        broker_id: int,
        kernel: Kernel,
        network: Network,
        store: StoreServer,
        rng: random.Random,
        config: BrokerConfig,
        on_end: Callable[[Node, str], None],
        check: Callable[[Node], None],
    ) -> None:
        self.broker_id = broker_id
        self.host = f"broker-{broker_id}"
        self.clock = NodeClock(kernel)
        self.files = MemoryFiles()
        self.life = 0
        self.is_stopping = False
        self.broker: Broker | None = None
        self.process = Process(self.host)
        self.process.is_dead = True
        self.session = SimulatedSession(store, self.host, self.process)
        self._config = config
        self._kernel = kernel
        self._network = network
        self._store = store
        self._rng = rng
        self._on_end = on_end
        self._check = check
        self._scope: CancelScope | None = None

    def __str__(self) -> str:
        return f"broker {self.broker_id}"

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return not self.process.is_dead

    @property
    def is_acting(self) -> bool:
        """Whether it runs, and is not frozen."""
        return not self.process.is_dead and not self.process.is_frozen

    @property
    def partitions(self) -> dict[TopicPartition, Partition]:
        """What it hosts."""
        return {} if self.broker is None else dict(self.broker.replica_manager.partitions)

    @property
    def connections(self) -> list[Connection]:
        """Those that clients and other brokers have to it."""
        if self.broker is None or not isinstance(self.broker.server, SimulatedServer):
            return []
        return [served.connection for served in self.broker.server.served]

    @property
    def is_controller(self) -> bool:
        """Whether it thinks so."""
        return self.broker is not None and self.broker.controller.is_active

    # -- its life ------------------------------------------------------------------------------

    def start(self) -> None:
        """A process begins, on what is on the disk."""
        self.life += 1
        self.is_stopping = False
        self.process = Process(f"{self.host}#{self.life}", partial(self._check, self))
        self.session = SimulatedSession(self._store, self.host, self.process)
        nursery = Nursery(self._kernel, self.process)
        nursery.start_soon(self._run, self.process)

    async def _run(self, process: Process) -> None:
        why = "stops"
        try:
            await self._serve(process)
        except* (LogDirectoryError, MetadataStoreError, BrokerIdTaken) as errors:
            why = f"ends: {errors.exceptions[0]}"
        self._end(process, why)

    async def _serve(self, process: Process) -> None:
        environment = Environment(
            clock=self.clock,
            files=self.files,
            rng=self._rng,
            store=self.session,
            make_server=partial(SimulatedServer, self._kernel, self._network, process, self.host),
            recovery_ms=None if self.life % 2 else 0,  # before it serves, or while it does
        )
        broker = await make_broker(self._config, environment=environment, descriptors=DESCRIPTORS)
        broker.links.open = opener(self._network, self._kernel, self.host, process)
        self.broker = broker
        with waiting.new_cancel_scope() as scope:
            self._scope = scope  # type: ignore[assignment]  # the kernel's
            await broker.run(lambda listeners: None)

    def stop(self) -> None:
        """Have it end in good order."""
        if self._scope is not None:
            self.is_stopping = True
            self._kernel.run(self.process, self._scope.cancel)

    def kill(self) -> None:
        """The process is no more; what it has written is there."""
        files = self.files
        self.files = files.after_kill()
        self._die(files, silently=False)

    def lose_power(self) -> None:
        """The machine is off; of what was not synced some is there."""
        files = self.files
        self.files = files.after_power_cut(self._rng)
        self._die(files, silently=True)

    def _die(self, files: MemoryFiles, *, silently: bool) -> None:
        files.cut_power_after(0)
        self._network.host_ended(self.host, silently=silently)
        self._kernel.kill(self.process)
        self.broker = None
        self._scope = None

    def _end(self, process: Process, why: str) -> None:
        """It has come to its end by itself."""
        self.files = self.files.after_kill()
        self._network.host_ended(self.host, silently=False)
        self.broker = None
        self._scope = None
        process.is_dead = True
        self._on_end(self, why)


def broker_config(broker_id: int, overrides: dict[str, Any]) -> BrokerConfig:
    """The settings of a simulated broker."""
    return BrokerConfig.from_sources(
        {
            "broker.id": str(broker_id),
            "listeners": "PLAINTEXT://:9092",
            "advertised.listeners": f"PLAINTEXT://broker-{broker_id}:9092",
            "log.dirs": "/data",
            "num.recovery.threads.per.data.dir": "1",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
            "share.coordinator.state.topic.num.partitions": "2",
            "auto.create.topics.enable": "false",
            **{key: str(value) for key, value in overrides.items()},
        }
    )

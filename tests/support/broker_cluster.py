"""Three broker processes that are one cluster, and what each of them says of it.

The metadata lie in one file that they share, or in a real ZooKeeper server.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import trio
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from odradek.controller.registration import read_live_brokers
from odradek.metadata_store import znodes
from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import NoNode, StoreUnreachable
from odradek.metadata_store.store import MetadataStore
from odradek.protocol.codec.message import Message
from odradek.runtime.clock import SystemClock
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until
from odradek.tools.conformance.connection import RESPONSE_SECONDS_MAX
from odradek.tools.zookeeper_process import ZooKeeperProcess

from .group_peer import GroupPeer
from .raw_connection import RawConnection

BROKER_IDS = (1, 2, 3)
SESSION_TIMEOUT_MS = 2_500
METADATA_FILE = "odradek-metadata.sqlite"
AGREE_SECONDS_MAX = SETTLE_SECONDS_MAX = 120.0
STORE_SECONDS_MAX = 60
"""How long the metadata store may take to answer a test."""
METADATA_VERSION = 9

ReadT = TypeVar("ReadT")


class PartitionView(NamedTuple):
    """One partition, as somebody knows it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: frozenset[int]


class View(NamedTuple):
    """The cluster, as somebody knows it."""

    controller: int
    brokers: frozenset[int]
    topics: dict[str, dict[int, PartitionView]]


class BrokerCluster:
    """Brokers 1, 2 and 3, each a process; a context manager that ends them.

    Args:
        folder: where all their files lie; those of a former cluster are taken over.
        zookeeper: the server to use; None: a file.
        settings: for every broker.
        ways: host:port at which some brokers reach the server, where it is not its own.
    """

    def __init__(
        self,
        folder: Path,
        zookeeper: ZooKeeperProcess | None = None,
        settings: dict[str, str] | None = None,
        ways: Mapping[int, str] | None = None,
    ) -> None:
        self.folder = folder
        self.zookeeper = zookeeper
        self._ways = dict(ways or {})
        self.settings = {"auto.leader.rebalance.enable": "false", **(settings or {})}
        self.shared = folder / "shared"
        self.shared.mkdir(parents=True, exist_ok=True)
        self.brokers = {broker_id: self._broker(broker_id) for broker_id in BROKER_IDS}

    def _broker(self, broker_id: int) -> BrokerProcess:
        settings = {**self.settings, "broker.rack": f"rack-{broker_id}"}
        if self.zookeeper is None:
            where = ["--cluster-dir", str(self.shared)]
        else:
            server = self._ways.get(broker_id, self.zookeeper.address)
            where = ["--zookeeper", f"{server}/{self.folder.name}"]
            settings.setdefault("zookeeper.session.timeout.ms", str(SESSION_TIMEOUT_MS))
            settings.setdefault("zookeeper.connection.timeout.ms", str(STORE_SECONDS_MAX * 1000))
        return BrokerProcess(
            self.folder / f"broker-{broker_id}",
            settings=settings,
            arguments=["--broker-id", str(broker_id), "-v", *where],
            start=False,
        )

    def __enter__(self) -> BrokerCluster:
        try:
            for broker in self.brokers.values():
                broker.start()
        except BaseException:
            self.kill_all()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()

    def kill_all(self) -> None:
        """SIGKILL to each that runs."""
        for broker in self.brokers.values():
            broker.kill()

    @property
    def zookeeper_connect(self) -> str:
        """host:port/chroot of the tree."""
        assert self.zookeeper is not None, "the metadata are in a file"
        return f"{self.zookeeper.address}/{self.folder.name}"

    @property
    def running(self) -> list[int]:
        """Ids of the brokers that run."""
        return [broker_id for broker_id, broker in self.brokers.items() if broker.is_running]

    @property
    def ports(self) -> dict[int, int]:
        """Of all brokers, for clients."""
        return {broker_id: broker.port for broker_id, broker in self.brokers.items()}

    @property
    def bootstrap(self) -> list[str]:
        """Addresses of the brokers that run."""
        return [self.brokers[broker_id].bootstrap for broker_id in self.running]

    def pause(self, broker_id: int) -> None:
        """SIGSTOP: the process does nothing, and nobody is told so."""
        os.kill(self.brokers[broker_id].pid, signal.SIGSTOP)

    def resume(self, broker_id: int) -> None:
        """SIGCONT."""
        os.kill(self.brokers[broker_id].pid, signal.SIGCONT)

    # -- asking ------------------------------------------------------------------------

    def ask(self, broker_id: int, request: Message, version: int) -> Any:
        """One request on a connection of its own. Raises OSError."""
        return ask(self.brokers[broker_id].port, request, version)

    def view(self, broker_id: int) -> View:
        """What a broker answers to Metadata, decoded by kafka-python. Raises OSError."""
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        with RawConnection(self.brokers[broker_id].port) as connection:
            answer = connection.ask(request, MetadataResponse, METADATA_VERSION)
        return View(
            answer.controller_id,
            frozenset(broker.node_id for broker in answer.brokers),
            {
                topic.name: {
                    partition.partition_index: PartitionView(
                        partition.leader_id,
                        partition.leader_epoch,
                        tuple(partition.replica_nodes),
                        frozenset(partition.isr_nodes),
                    )
                    for partition in topic.partitions
                }
                for topic in answer.topics
            },
        )

    def tree(self) -> View:
        """What the metadata store holds."""
        return self._read(read_view)

    def tree_or_none(self) -> View | None:
        """What the metadata store holds; None while there is no controller."""
        try:
            return self.tree()
        except NoNode:
            return None

    def wait_in_sync(self, *names: str) -> None:
        """Wait until all brokers are there, and all replicas of all topics are in sync.

        Args:
            names: of topics that must be there.
        """

        def is_whole() -> bool:
            view = self.tree_or_none()
            return (
                view is not None
                and view.brokers == frozenset(self.running)
                and view.topics.keys() >= set(names)
                and all(
                    each.leader in view.brokers and each.isr == set(each.replicas)
                    for topic in view.topics.values()
                    for each in topic.values()
                )
            )

        wait_until(is_whole, SETTLE_SECONDS_MAX, f"replicas are not in sync: {self.folder}")

    def topics_in_tree(self) -> set[str]:
        """The topics of the metadata store, those that are being deleted among them."""

        return self.children_in_tree(znodes.TOPICS) | self.topics_marked_in_tree()

    def topics_marked_in_tree(self) -> set[str]:
        """The topics that are being deleted."""
        return self.children_in_tree(znodes.DELETE_TOPICS)

    def brokers_in_tree(self) -> set[int]:
        """The brokers that are registered."""
        return {int(name) for name in self.children_in_tree(znodes.BROKER_IDS)}

    def broker_epochs(self) -> dict[int, int]:
        """The epoch of each broker's present registration."""

        async def read(store: MetadataStore) -> dict[int, int]:
            live = await read_live_brokers(store)
            return {broker_id: broker.epoch for broker_id, broker in live.items()}

        return self._read(read)

    def renewals(self) -> dict[int, int]:
        """How often each session of the file was renewed, by its id."""
        with closing(sqlite3.connect(self.shared / METADATA_FILE)) as file:
            return dict(file.execute("SELECT id, renewals FROM sessions").fetchall())

    def children_in_tree(self, path: str) -> set[str]:
        """The names of a node's children in the metadata store."""

        async def read(store: MetadataStore) -> set[str]:
            return set(await store.children(path))

        return self._read(read)

    def write_in_tree(self, path: str, data: bytes) -> None:
        """Make a node of the metadata store, as a broker of another release might."""

        async def write(store: MetadataStore) -> None:
            await store.create(path, data)

        self._read(write)

    def _read(self, read: Callable[[MetadataStore], Awaitable[ReadT]]) -> ReadT:
        async def open_and_read() -> ReadT:
            store = self._store()
            await store.open()
            try:
                return await read(store)
            finally:
                await store.close()

        return trio.run(open_and_read)

    def _store(self) -> MetadataStore:
        if self.zookeeper is None:
            return EmbeddedStore(
                self.shared / METADATA_FILE,
                clock=SystemClock(),
                busy_wait_ms_max=STORE_SECONDS_MAX * 1000,
            )
        from odradek.metadata_store.zookeeper.zookeeper_store import ZooKeeperStore

        return ZooKeeperStore(
            self.zookeeper_connect,
            session_timeout_ms=30_000,
            connection_timeout_ms=STORE_SECONDS_MAX * 1000,
        )

    def agreed(self, until: Callable[[View], bool] = lambda view: True) -> View:
        """Wait until the tree and every broker that runs say the same, and `until` holds.

        Raises:
            AssertionError: they do not within `AGREE_SECONDS_MAX`.
        """
        views: dict[str, Any] = {}

        def agreed() -> View | None:
            views.clear()
            try:
                views["the tree"] = self.tree()
                for broker_id in self.running:
                    views[f"broker {broker_id}"] = self.view(broker_id)
            except (OSError, NoNode, StoreUnreachable) as error:
                views["nobody"] = error
            first = views.get("the tree")
            if (
                isinstance(first, View)
                and first.brokers == frozenset(self.running)
                and all(view == first for view in views.values())
                and until(first)
            ):
                return first
            return None

        return wait_until(agreed, AGREE_SECONDS_MAX, lambda: self._disagreement(views))

    def settled(self, until: Callable[[View], bool] = lambda view: True) -> View:
        """As `agreed`, when there is nothing more to come: all live replicas are in sync.

        A replica that has returned joins the ISR a little later, and brokers agree before that.
        """

        def is_settled(view: View) -> bool:
            return until(view) and all(
                each.leader == -1 or each.isr == view.brokers.intersection(each.replicas)
                for partitions in view.topics.values()
                for each in partitions.values()
            )

        return self.agreed(is_settled)

    def _disagreement(self, views: dict[str, Any]) -> str:
        lines = [f"no agreement after {AGREE_SECONDS_MAX} s:"]
        lines += [f"{who}: {view}" for who, view in views.items()]
        lines += [
            f"--- broker {broker_id}\n{broker.log[-3000:]}"
            for broker_id, broker in self.brokers.items()
        ]
        return "\n".join(lines)


async def read_view(store: MetadataStore) -> View:
    """The cluster as a store's tree has it, without the topics that are being deleted."""
    topics: dict[str, dict[int, PartitionView]] = {}
    marked = set(await store.children(znodes.DELETE_TOPICS))
    for name in await store.children(znodes.TOPICS):
        if name in marked:
            continue
        assigned = znodes.decode_topic((await store.get(znodes.topic_path(name))).data)
        partitions = topics[name] = {}
        for partition, replicas in assigned.assignment.items():
            node = await store.get(znodes.partition_state_path(name, partition))
            state = znodes.decode_partition_state(node.data)
            partitions[partition] = PartitionView(
                state.leader, state.leader_epoch, tuple(replicas), frozenset(state.isr)
            )
    controller = znodes.decode_controller((await store.get(znodes.CONTROLLER)).data)
    ids = await store.children(znodes.BROKER_IDS)
    return View(controller, frozenset(map(int, ids)), topics)


def ask(port: int, request: Message, version: int, timeout: float = RESPONSE_SECONDS_MAX) -> Any:
    """One request on a connection of its own, and its answer. Raises OSError."""
    with GroupPeer(port, "a test", timeout) as peer:
        return peer.ask(request, version)


def leaders(view: View, topic: str) -> set[int]:
    """Who leads a topic's partitions."""
    return {partition.leader for partition in view.topics[topic].values()}

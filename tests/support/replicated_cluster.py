"""Three broker processes with a replicated topic under load, and links that can be cut."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

from odradek.metadata_store import znodes
from odradek.metadata_store.errors import NoNode
from odradek.metadata_store.store import MetadataStore
from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.process.held_port import HeldPort
from odradek.testing.waiting import wait_until
from odradek.tools.zookeeper_process import ZooKeeperProcess

from .broker_cluster import BROKER_IDS, METADATA_FILE, BrokerCluster, PartitionView, View
from .brokers_in_one_process import BrokerInside, BrokersProcess
from .cluster_topics import create_topic_on
from .cut_links import Cut, CuttableLinks
from .load_history import token_of
from .replica_files import producers_of, read_replica, values_of
from .replication_checker import ReplicationChecker
from .steady_load import SteadyLoad

TOPIC = "replicated"
ASSIGNMENT = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
LAG_MS_MAX = 2_000
SESSION_MS = 4_000
"""In ZooKeeper, of a broker: longer than one is frozen that is to keep its session."""
LOG_TAIL = 20_000

SETTINGS = {
    "replica.lag.time.max.ms": str(LAG_MS_MAX),
    "replica.fetch.wait.max.ms": "200",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "default.replication.factor": "3",
    "inter.broker.listener.name": "INTER",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTER:PLAINTEXT",
}


class BrokenBrokerProcess(BrokerProcess):
    """A broker with a part of replication switched off; see `broken_broker`.

    Args:
        sound: is the same but for the fault.
        fault: what is switched off.
    """

    def __init__(self, sound: BrokerProcess, fault: str) -> None:
        self._fault = fault
        super().__init__(
            sound.data_dir, settings=sound.settings, arguments=sound.arguments, start=False
        )

    def command(self) -> list[str]:
        """The command line of the next start."""
        python, _, _, *rest = super().command()
        return [python, str(Path(__file__).with_name("broken_broker.py")), self._fault, *rest]


class ReplicatedCluster(BrokerCluster):
    """Brokers that reach each other through links of their own.

    Args:
        folder: where all their files lie.
        zookeeper: the server to use; None: a file.
        settings: for every broker, besides `SETTINGS`.
        fault: what is switched off in every broker; "": nothing.
        in_one_process: whether all brokers are in one, and die one by one all the same.
    """

    def __init__(
        self,
        folder: Path,
        zookeeper: ZooKeeperProcess | None = None,
        settings: dict[str, str] | None = None,
        fault: str = "",
        *,
        in_one_process: bool = False,
    ) -> None:
        self._held = [(HeldPort(), HeldPort()) for _ in BROKER_IDS]
        pairs = dict(zip(BROKER_IDS, self._held, strict=True))
        self._inner_ports = {broker_id: inner.port for broker_id, (inner, _) in pairs.items()}
        self._outer_ports = {broker_id: outer.port for broker_id, (_, outer) in pairs.items()}
        self._fault = fault
        self._process = BrokersProcess(folder / "brokers.log") if in_one_process else None
        self.links = CuttableLinks(self._inner_ports)
        super().__init__(folder, zookeeper, {**SETTINGS, **(settings or {})})

    @property
    def ports(self) -> dict[int, int]:
        """Of all brokers, for clients."""
        return dict(self._outer_ports)

    def _broker(self, broker_id: int) -> BrokerProcess:
        broker = super()._broker(broker_id)
        outer = f"CLIENT://127.0.0.1:{self._outer_ports[broker_id]}"
        broker.settings["listeners"] = f"{outer},INTER://127.0.0.1:{self._inner_ports[broker_id]}"
        broker.settings["advertised.listeners"] = (
            f"{outer},INTER://127.0.0.1:{self.links.ports[broker_id]}"
        )
        if self.zookeeper is not None:
            broker.settings["zookeeper.session.timeout.ms"] = str(SESSION_MS)
        if self._process is not None:
            return BrokerInside(self._process, broker_id, broker, self.shared)
        return BrokenBrokerProcess(broker, self._fault) if self._fault else broker

    def __enter__(self) -> ReplicatedCluster:
        self.links.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        try:
            super().__exit__(*details)
        finally:
            if self._process is not None:
                self._process.end()
            self.links.__exit__(*details)

    def pause(self, broker_id: int) -> None:
        """Freeze a broker; in one process, cut it off from the other brokers."""
        if self._process is None:
            super().pause(broker_id)
        else:
            for other in set(BROKER_IDS) - {broker_id}:
                self.links.cut((broker_id, other), Cut.SILENT)

    def resume(self, broker_id: int) -> None:
        """Undo `pause`."""
        if self._process is None:
            super().resume(broker_id)
        else:
            for other in set(BROKER_IDS) - {broker_id}:
                self.links.heal((broker_id, other))

    # -- the topic ----------------------------------------------------------------------

    def create_topic(
        self, *assignment: tuple[int, ...], configs: dict[str, str] | None = None
    ) -> None:
        """Make the topic, and wait until all its replicas are in sync and every broker knows.

        A broker that is told late answers that it has no such partition, as in Kafka, and for
        librdkafka's consumer that is the end of a partition whose beginning it asks for.
        """
        create_topic_on(self, TOPIC, *assignment, configs=configs)

    def partitions(self) -> dict[int, PartitionView]:
        """The topic's, as the metadata store has them."""
        return self.settled_tree().topics[TOPIC]

    def settled_tree(self) -> View:
        """What the metadata store holds, as soon as there is a controller."""
        return wait_until(self.tree_or_none, otherwise="there is no controller")

    def registration(self, broker_id: int) -> int | None:
        """Which of a broker's registrations is the one in the store; None: it has none."""

        async def read(store: MetadataStore) -> int | None:
            try:
                return (await store.get(f"{znodes.BROKER_IDS}/{broker_id}")).creation_id
            except NoNode:
                return None

        return self._read(read)

    def end_lease(self, broker_id: int) -> None:
        """Have the embedded store end a broker's session, though the broker is well."""
        connection = sqlite3.connect(self.shared / METADATA_FILE, timeout=60)
        try:
            with connection:
                done = connection.execute(
                    "UPDATE sessions SET timeout_ms = 0 WHERE id = (SELECT session FROM nodes "
                    "WHERE parent = '/brokers/ids' AND name = ?)",
                    (str(broker_id),),
                )
                assert done.rowcount == 1, f"broker {broker_id} has no session"
        finally:
            connection.close()

    def start_together(self, *broker_ids: int) -> None:
        """Start several brokers at once, and wait until they are ready."""
        troubles: list[BaseException] = []

        def start(broker_id: int) -> None:
            try:
                self.brokers[broker_id].start()
            except BaseException as trouble:
                troubles.append(trouble)

        threads = [threading.Thread(target=start, args=(each,)) for each in broker_ids]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if troubles:
            raise troubles[0]

    def logs(self) -> str:
        """The end of each broker's log."""
        return "\n".join(
            f"--- broker {broker_id}\n{broker.log[-LOG_TAIL:]}"
            for broker_id, broker in self.brokers.items()
        )


def finish_and_check(cluster: ReplicatedCluster, load: SteadyLoad) -> ReplicationChecker:
    """Bring all to rest, read all once more, kill the brokers, and hold their files to it all."""
    load.stop_sending()
    cluster.wait_in_sync()
    ends = load.end_offsets()
    load.read_all("the last reader", threading.Event(), ends)
    load.stop()
    cluster.kill_all()
    checker = load.history.checker
    for partition in load.partitions:
        replicas = [
            read_replica(broker_id, cluster.folder / f"broker-{broker_id}", TOPIC, partition)
            for broker_id in BROKER_IDS
        ]
        checker.compare_replicas(partition, replicas, ends[partition])
        for replica in replicas:
            contents = {
                offset: token_of(value)
                for offset, value in values_of(replica.batches, ends[partition])
            }
            producers = producers_of(replica.batches)
            checker.finish(partition, contents, replica.log_start_offset, producers)
    return checker

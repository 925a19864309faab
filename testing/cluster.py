"""`Cluster`: several brokers for tests, each a process, that are one Kafka cluster.

with odradek.testing.Cluster(3) as cluster:
    cluster.brokers[0].kill()
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from .client_settings import TlsFiles
from .inspection.cluster_inspection import ClusterInspection
from .outages.cluster_outages import ClusterOutages
from .running_broker import Broker
from .security.access import HasAccess

if TYPE_CHECKING:
    from .control.client import ControlClient
    from .faults.cluster_faults import ClusterFaults


class Cluster(ClusterOutages, ClusterInspection, HasAccess):
    """Brokers with the ids 1, 2, ... that know each other; ready when the constructor returns.

    Args:
        count: how many.
        settings: of all of them, by Kafka's names.
        tls: whether clients must speak TLS; brokers do it among themselves, too.
        sasl: the mechanism by which clients and brokers log in.
        acls: whether clients may do only what ACLs allow, but for the administrator.
        listen: HOST:PORT of the first broker's listener; the others have the ports that follow, or
            any free ones with port 0.
        external: HOST or HOST:PORT by which containers and other hosts know this machine, as of
            `Broker`; it is the first broker's, and the others have the ports that follow.

    Attributes:
        brokers: in the order of their ids. Each can be killed, and started again on the same
            port and data.
        tls: the certificates, of clients too; None if it is plain.
        sasl: how clients log in, and the administrator; None if they do not.

    Raises:
        BrokerStartError: one did not become ready.
    """

    def __init__(
        self,
        count: int = 3,
        settings: Mapping[str, str] | None = None,
        *,
        tls: bool = False,
        sasl: str | None = None,
        acls: bool = False,
        listen: str = "127.0.0.1:0",
        external: str | None = None,
    ) -> None:
        __tracebackhide__ = True
        self._external = external
        self._host, _, port = listen.rpartition(":")
        self._first_port = int(port)
        self._folder = Path(tempfile.mkdtemp(prefix="odradek-"))
        self._maker = os.getpid()
        self.tls = _certificates(self._folder, external) if tls else None
        if sasl is not None:
            from .security.broker_security import make_sasl

            self.sasl = make_sasl(sasl)
        self._acls = acls
        replicas = str(min(count, 3))
        self._settings = {
            "metadata.log.dir": str(self._folder),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(count, 2)),
            **(settings or {}),
        }
        self._latest_id = count
        self.brokers: list[Broker] = []
        atexit.register(self.close)
        try:
            with ThreadPoolExecutor(count) as threads:
                starts = [threads.submit(self._start, number) for number in range(1, count + 1)]
            self.brokers = [each.result() for each in starts if each.exception() is None]
            for each in starts:
                each.result()
        except BaseException:
            self.close()
            raise

    def _start(self, broker_id: int, settings: Mapping[str, str] | None = None) -> Broker:
        __tracebackhide__ = True
        port = self._first_port + broker_id - 1 if self._first_port else 0
        return Broker(
            {**self._settings, **(settings or {}), "broker.id": str(broker_id)},
            listen=f"{self._host}:{port}",
            leftovers=[self._folder],
            tls=self.tls or False,
            sasl=self.sasl,
            acls=self._acls,
            external=_nth_address(self._external, broker_id),
        )

    def add_broker(self, settings: Mapping[str, str] | None = None) -> Broker:
        """Have one broker more, of the next id; it has no replicas before a topic is made there,
        or a partition reassigned to it.

        Args:
            settings: its own, before those of all brokers.

        Raises:
            BrokerStartError: it did not become ready.
        """
        self._latest_id += 1
        broker = self._start(self._latest_id, settings)
        self.brokers.append(broker)
        return broker

    def remove_broker(self, broker_id: int | Broker) -> None:
        """Stop a broker in good order, for good, and remove what it kept.

        As in Kafka it stays in the replicas of its partitions, which others lead then where they
        can: reassign them before if they are to have as many copies as they had.

        Args:
            broker_id: its id, or the broker itself.

        Raises:
            ValueError: there is no such broker.
        """
        broker = self.broker(broker_id)
        if broker.is_running:
            broker.thaw()
            broker.stop()
        self.brokers.remove(broker)
        broker.close()

    @property
    def bootstrap_servers(self) -> str:
        """The addresses to give to clients."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    @property
    def external_bootstrap_servers(self) -> str:
        """The addresses to give to clients in containers, or on other hosts.

        Raises:
            RuntimeError: it has none, since it was made without `external`.
        """
        return ",".join(broker.external_bootstrap_servers for broker in self.brokers)

    def keep_plain_user(self, key: str, name: str, password: str | None) -> None:
        """Have a user of PLAIN be there, or not, after a restart of any broker."""
        for broker in self.brokers:
            broker.keep_plain_user(key, name, password)

    def controls(self) -> list[ControlClient]:
        """The control channels of the brokers that run."""
        return [each.control() for each in self.running()]

    @property
    def faults(self) -> ClusterFaults:
        """Faults of the connections of all its brokers; `broker.faults` has a single one's."""
        from .faults.cluster_faults import ClusterFaults

        return ClusterFaults(lambda: self.brokers)

    def close(self) -> None:
        """End all brokers, at once, and remove all they kept; it may be called again."""
        atexit.unregister(self.close)
        for broker in self.brokers:
            broker.close()
        if os.getpid() == self._maker:  # a fork of it leaves all to it
            shutil.rmtree(self._folder, ignore_errors=True)

    def __repr__(self) -> str:
        states = {each: "" if each in self.running() else " (frozen)" for each in self.brokers}
        states |= {each: " (down)" for each in self.brokers if not each.is_running}
        ids = ", ".join(f"{each.broker_id}{state}" for each, state in states.items())
        return f"<Kafka cluster of brokers {ids} at {self.bootstrap_servers}>"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _nth_address(first: str | None, number: int) -> str | None:
    """The address of the n-th broker, from 1: the port follows, if there is one."""
    host, colon, port = (first or "").rpartition(":")
    return f"{host}:{int(port) + number - 1}" if colon and int(port) else first


def _certificates(folder: Path, external: str | None) -> TlsFiles:
    """One set of certificates for all brokers: they are on the same host."""
    from .certificates import make_tls_files

    try:
        return make_tls_files(folder / "tls", *([external.partition(":")[0]] if external else []))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise

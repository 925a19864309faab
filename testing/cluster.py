"""`Cluster`: several brokers for tests, each a process, that are one Kafka cluster.

with odradek.testing.Cluster(3) as cluster:
    cluster.brokers[0].kill()
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from .running_broker import Broker


class Cluster:
    """Brokers with the ids 1, 2, ... that know each other; ready when the constructor returns.

    Args:
        count: how many.
        settings: of all of them, by Kafka's names.

    Attributes:
        brokers: in the order of their ids. Each can be killed, and started again on the same
            port and data.

    Raises:
        BrokerStartError: one did not become ready.
    """

    def __init__(self, count: int = 3, settings: Mapping[str, str] | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="odradek-"))
        replicas = str(min(count, 3))
        common = {
            "metadata.log.dir": str(self._folder),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": str(min(count, 2)),
            **(settings or {}),
        }

        def start(number: int) -> Broker:
            return Broker({**common, "broker.id": str(number)}, leftovers=[self._folder])

        self.brokers: list[Broker] = []
        try:
            with ThreadPoolExecutor(count) as threads:
                self.brokers = list(threads.map(start, range(1, count + 1)))
        except BaseException:
            self.close()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """The addresses to give to clients."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def close(self) -> None:
        """End all brokers, at once, and remove all they kept; it may be called again."""
        for broker in self.brokers:
            broker.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

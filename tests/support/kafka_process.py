"""Apache Kafka in a process of its own, with the face of `BrokerProcess`.

The tests that kill, break and refill a broker can so be proved against the original: set
`ODRADEK_TEST_KAFKA_LIBS` to a folder with the jars of `kafka_2.13` and its dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from odradek.testing.waiting import wait_until
from odradek.tools.conformance.apache_kafka import KafkaProcess

__all__ = ["KafkaProcess", "KafkaZooKeeperProcess", "wait_for_text"]


class KafkaZooKeeperProcess(KafkaProcess):
    """Kafka 3.9 in ZooKeeper mode.

    Args:
        libs: the folder of its jars.
        data_dir: where its logs lie.
        broker_id: its id in the cluster.
        connect: host:port/chroot of the tree.
        settings: over those of one broker among a few.
    """

    def __init__(
        self,
        libs: Path,
        data_dir: Path,
        *,
        broker_id: int,
        connect: str,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._broker_id = broker_id
        self._connect = connect
        super().__init__(libs, data_dir, settings=settings)

    def _format(self) -> None:
        """There is nothing to format before KRaft, but the properties must be there."""
        settings = {
            "broker.id": str(self._broker_id),
            "broker.rack": f"rack-{self._broker_id}",
            "zookeeper.connect": self._connect,
            "zookeeper.session.timeout.ms": "60000",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "auto.create.topics.enable": "false",
            "auto.leader.rebalance.enable": "false",
            "controlled.shutdown.retry.backoff.ms": "200",
            **self.settings,
        }
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def wait_for_text(path: Path, text: str, seconds_max: float = 60.0) -> None:
    """Wait until a file that another process writes holds some text."""
    wait_until(
        lambda: path.exists() and text in path.read_text(),
        seconds_max,
        f"{path} does not hold {text!r}",
    )

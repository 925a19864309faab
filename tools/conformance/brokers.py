"""The two brokers, started with like settings, so that they can be compared."""

from __future__ import annotations

import sys
from pathlib import Path

from ...testing.process.broker_process import BrokerProcess
from .apache_kafka import KafkaProcess

SINGLE_BROKER_SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.assignment.interval.ms": "0",
    "log.retention.ms": "-1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "broker.session.timeout.ms": "120000",
}
"""Settings of both. Waiting for members to come, and for a second one to be assigned, is left
out; internal topics have one partition, since the hash of a name says nothing about a broker;
nothing is deleted for its age, since scenarios write with one old timestamp; and Kafka's controller
does not give up its broker on a busy machine, which would raise the epochs of leaders."""

BROKER_ID = "1"
LOG_DIRS = ("logs-1", "logs-2")


class OdradekProcess(BrokerProcess):
    """odradek with several log directories, which its settings name."""

    def command(self) -> list[str]:
        """The command line of the next start."""
        command = [sys.executable, "-m", "odradek", "serve", "--listen", self.bootstrap]
        for key, value in self.settings.items():
            command += ["-o", f"{key}={value}"]
        return command


def start_kafka(folder: Path, libs: Path) -> KafkaProcess:
    """Start Apache Kafka.

    Args:
        folder: takes its logs and all else of it; made if it is not there.
        libs: its jars.

    Raises:
        BrokerStartError: it did not become ready.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SINGLE_BROKER_SETTINGS, "node.id": BROKER_ID, "log.dirs": _log_dirs(folder)}
    return KafkaProcess(libs, folder / "kafka", settings=settings)


def start_odradek(folder: Path) -> OdradekProcess:
    """Start odradek. Arguments and errors are those of `start_kafka`."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SINGLE_BROKER_SETTINGS, "broker.id": BROKER_ID, "log.dirs": _log_dirs(folder)}
    return OdradekProcess(folder / "odradek", settings=settings)


def _log_dirs(folder: Path) -> str:
    return ",".join(str(folder / name) for name in LOG_DIRS)

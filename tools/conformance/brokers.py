"""The two brokers, started with like settings, so that they can be compared."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from ...testing.process.broker_process import BrokerProcess
from .apache_kafka import KafkaProcess
from .connection import Login

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
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "log.retention.ms": "-1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "broker.session.timeout.ms": "120000",
}
"""Settings of both. Waiting for members to come, and for a second one to be assigned, is left
out; internal topics have one partition, since the hash of a name says nothing about a broker;
nothing is deleted for its age, since scenarios write with one old timestamp; and Kafka's controller
does not give up its broker on a busy machine, which would raise the epochs of leaders."""

ADMIN = Login("admin", "admin-secret")
ALICE = Login("alice", "alice-secret")

AUTHORIZER_SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{ADMIN.name}" password="{ADMIN.password}" '
        f'user_{ADMIN.name}="{ADMIN.password}" user_{ALICE.name}="{ALICE.password}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:{ADMIN.name};User:ANONYMOUS",
    "delegation.token.secret.key": "conformance",
}
"""Of both, where it counts who may do what: `ADMIN` may do everything, and `ALICE` what ACLs say.
Kafka's broker is nobody on the listener of its own controller."""

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


def start_kafka(
    folder: Path, libs: Path, more_settings: Mapping[str, str] | None = None
) -> KafkaProcess:
    """Start Apache Kafka.

    Args:
        folder: takes its logs and all else of it; made if it is not there.
        libs: its jars.
        more_settings: further ones of both brokers, such as `AUTHORIZER_SETTINGS`.

    Raises:
        BrokerStartError: it did not become ready.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SINGLE_BROKER_SETTINGS, "node.id": BROKER_ID, "log.dirs": _log_dirs(folder)}
    settings |= more_settings or {}
    return KafkaProcess(libs, folder / "kafka", settings=settings)


def start_odradek(folder: Path, more_settings: Mapping[str, str] | None = None) -> OdradekProcess:
    """Start odradek. Arguments and errors are those of `start_kafka`."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**SINGLE_BROKER_SETTINGS, "broker.id": BROKER_ID, "log.dirs": _log_dirs(folder)}
    settings |= more_settings or {}
    return OdradekProcess(folder / "odradek", settings=settings)


def _log_dirs(folder: Path) -> str:
    return ",".join(str(folder / name) for name in LOG_DIRS)

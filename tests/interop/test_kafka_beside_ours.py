"""A Kafka 3.9 broker beside one of ours in a cluster: each takes what the other one sends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from support.kafka_jars import KAFKA_3_9_FOLDER, kafka_jars
from support.kafka_process import KafkaZooKeeperProcess

from odradek.testing.process.broker_process import BrokerProcess
from odradek.testing.waiting import wait_until
from odradek.tools.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

OURS, KAFKA, THIRD = 1, 2, 3
SETTLED = 120.0
RECORDS = 100


class Mixed(NamedTuple):
    """Our broker is the first, and the controller.

    Attributes:
        connect: where in ZooKeeper the cluster is.
    """

    ours: BrokerProcess
    kafka: KafkaZooKeeperProcess
    connect: str

    def partitions(self) -> dict[int, tuple[int, set[int]]]:
        """The leader and the ISR of each of the topic's partitions, as our broker says it."""
        admin = AdminClient({"bootstrap.servers": self.ours.bootstrap})
        topic = admin.list_topics("t", timeout=SETTLED).topics["t"]
        return {each.id: (each.leader, set(each.isrs)) for each in topic.partitions.values()}


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Mixed]:
    zookeeper = ZooKeeperProcess(tmp_path / "zookeeper")
    with ExitStack() as stack:
        stack.callback(zookeeper.kill)
        zookeeper.start()
        connect = f"{zookeeper.address}/shop"
        ours = BrokerProcess(
            tmp_path / "ours",
            settings={"zookeeper.session.timeout.ms": "10000"},
            arguments=["--broker-id", str(OURS), "-v", "--zookeeper", connect],
        )
        stack.callback(ours.kill)
        kafka = KafkaZooKeeperProcess(
            kafka_jars(KAFKA_3_9_FOLDER), tmp_path / "kafka", broker_id=KAFKA, connect=connect
        )
        stack.callback(kafka.kill)
        yield Mixed(ours, kafka, connect)


def test_a_kafka_broker_follows_leads_and_leaves_beside_ours(mixed: Mixed) -> None:
    both = {OURS, KAFKA}
    admin = KafkaAdminClient(bootstrap_servers=[mixed.ours.bootstrap])
    assignment = {0: [OURS, KAFKA], 1: [KAFKA, OURS]}
    admin.create_topics([NewTopic("t", replica_assignments=assignment)])
    admin.close()
    # Our controller's requests are taken by both, and Kafka's fetches by ours.
    producer = Producer({"bootstrap.servers": mixed.ours.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce("t", f"value-{number}", partition=number % 2)
    assert producer.flush(SETTLED) == 0
    wait_until(lambda: mixed.partitions() == {0: (OURS, both), 1: (KAFKA, both)}, SETTLED)
    # Kafka's ControlledShutdown is, too: its partition moves before its session has ended.
    assert mixed.kafka.stop() in (0, 143)
    assert mixed.partitions() == {0: (OURS, {OURS}), 1: (OURS, {OURS})}


def test_kafka_has_our_controller_write_the_isr_that_it_leads(mixed: Mixed, tmp_path: Path) -> None:
    """By AlterPartition: only the leader can know that a follower has caught up again."""
    third = BrokerProcess(
        tmp_path / "third",
        settings={"zookeeper.session.timeout.ms": "6000"},
        arguments=["--broker-id", str(THIRD), "-v", "--zookeeper", mixed.connect],
    )
    with ExitStack() as stack:
        stack.callback(third.kill)
        admin = KafkaAdminClient(bootstrap_servers=[mixed.ours.bootstrap])
        admin.create_topics([NewTopic("t", replica_assignments={0: [KAFKA, THIRD]})])
        admin.close()
        wait_until(lambda: mixed.partitions() == {0: (KAFKA, {KAFKA, THIRD})}, SETTLED)
        third.kill()
        wait_until(lambda: mixed.partitions() == {0: (KAFKA, {KAFKA})}, SETTLED)
        third.start()
        wait_until(lambda: mixed.partitions() == {0: (KAFKA, {KAFKA, THIRD})}, SETTLED)

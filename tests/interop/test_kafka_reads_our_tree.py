"""Kafka 3.9 brokers that are started on the ZooKeeper tree of ours, and ours after them again.

Ours leave a deletion and a reassignment unfinished, which Kafka's controller has to find there.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from kafka import KafkaAdminClient
from kafka.admin import NewPartitions, NewTopic
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse
from support.broker_cluster import BROKER_IDS, BrokerCluster, View
from support.config_cases import BROKER, SET, TOPIC
from support.config_requests import alter_configs, describe_config
from support.kafka_jars import KAFKA_3_9_FOLDER, kafka_jars
from support.kafka_process import KafkaZooKeeperProcess
from support.raw_connection import RawConnection

from odradek.common.errors import ErrorCode
from odradek.protocol import messages
from odradek.testing.waiting import wait_until
from odradek.tools.zookeeper_process import ZooKeeperProcess

pytestmark = [pytest.mark.interop, pytest.mark.timeout(880)]

RECORDS = 100
SETTLED = 120.0
"""Seconds at most until all Kafkas know leaders of all partitions."""

SESSION_MS = 10_000
"""Of our brokers in ZooKeeper: the controller must not change on a machine that is busy."""

FROM_TOPIC, FROM_BROKER, FROM_ALL_BROKERS = 1, 2, 3
SETTINGS = [
    (TOPIC, "orders", "retention.ms", "12345678", FROM_TOPIC),
    (TOPIC, "orders", "cleanup.policy", "compact,delete", FROM_TOPIC),
    (TOPIC, "pairs", "max.message.bytes", "54321", FROM_TOPIC),
    (BROKER, "", "message.max.bytes", "2000000", FROM_ALL_BROKERS),
    (BROKER, "1", "log.retention.ms", "7777777", FROM_BROKER),
]
"""What is set at one of our brokers, and where Kafka shall say that it comes from."""

REASSIGN_VERSION, DELETE_VERSION = 0, 4

Topics = dict[str, tuple[str, dict[int, list[int]]]]
"""The id of each topic, and the replicas of its partitions."""


Brokers = dict[int, KafkaZooKeeperProcess]


class OurLife(NamedTuple):
    """What our brokers said before they ended."""

    cluster: BrokerCluster
    topics: Topics
    producer_id: int


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperProcess]:
    server = ZooKeeperProcess(tmp_path_factory.mktemp("zookeeper"))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def our_life(
    zookeeper: ZooKeeperProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OurLife]:
    folder = tmp_path_factory.mktemp("tree") / "shop"
    settings = {"zookeeper.session.timeout.ms": str(SESSION_MS)}
    with BrokerCluster(folder, zookeeper, settings) as cluster:
        cluster.agreed()
        make_topics(cluster.bootstrap)
        make_settings(cluster.brokers[1].port)
        produce(cluster.bootstrap)
        producer_id = new_producer_id(cluster.brokers[1].port)
        wait_until(lambda: cluster.topics_marked_in_tree() == set())
        leave_work_behind(cluster)
        topics = described(cluster.bootstrap)
        for broker_id in cluster.running:
            assert cluster.brokers[broker_id].stop() == 0
        wait_until(lambda: cluster.brokers_in_tree() == set())
        yield OurLife(cluster, topics, producer_id)


@pytest.fixture(scope="module")
def kafkas(our_life: OurLife) -> Iterator[Brokers]:
    """Three Kafka brokers with the ids and the files of ours."""
    libs = kafka_jars(KAFKA_3_9_FOLDER)
    cluster = our_life.cluster

    def start(broker_id: int) -> KafkaZooKeeperProcess:
        data = cluster.folder / f"broker-{broker_id}"
        write_older_meta_properties(data)
        return KafkaZooKeeperProcess(
            libs,
            data,
            broker_id=broker_id,
            connect=cluster.zookeeper_connect,
        )

    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        brokers = dict(zip(BROKER_IDS, pool.map(start, BROKER_IDS), strict=True))
        for broker in brokers.values():
            stack.callback(broker.kill)
        for broker in brokers.values():
            # Each hears of the controller's work by and by.
            wait_until(lambda at=broker: knows_leaders(at, our_life.topics), SETTLED)
        yield brokers


def write_older_meta_properties(data: Path) -> None:
    """Ours are of version 1, which a Kafka 3.9 takes in KRaft mode only."""
    path = data / "meta.properties"
    of_id = dict(line.split("=") for line in path.read_text().splitlines())
    path.write_text(f"version=0\nbroker.id={of_id['node.id']}\ncluster.id={of_id['cluster.id']}\n")


def bootstrap_of(kafkas: Brokers) -> list[str]:
    return [broker.bootstrap for broker in kafkas.values()]


def make_topics(bootstrap: list[str]) -> None:
    def assigned(name: str, *replicas: list[int]) -> NewTopic:
        return NewTopic(name, replica_assignments=dict(enumerate(replicas)))

    settings = {key: value for _, name, key, value, _ in SETTINGS if name == "orders"}
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics(
        [
            NewTopic("orders", 4, 3, topic_configs=settings),
            assigned("alone", [1], [2], [3]),
            assigned("pairs", [1, 2], [2, 3]),
            NewTopic("gone", 2, 2),
            assigned("doomed", [1, 2, 3]),
            assigned("moving", [2, 1]),
        ]
    )
    admin.create_partitions({"pairs": NewPartitions(3, [[3, 1]])})
    admin.delete_topics(["gone"])
    admin.close()


def make_settings(port: int) -> None:
    with RawConnection(port) as connection:
        for kind, name, key, value, _ in SETTINGS:
            if name != "orders":
                assert alter_configs(connection, kind, name, [(key, SET, value)]) == 0


def produce(bootstrap: list[str]) -> None:
    producer = Producer({"bootstrap.servers": ",".join(bootstrap), "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce("alone", f"value-{number}", partition=number % 3)
    assert producer.flush(SETTLED) == 0


def new_producer_id(port: int) -> int:
    def given() -> int | None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        answer = connection.ask(request, InitProducerIdResponse, 1)
        if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return None  # the broker asks the controller for a block of them
        assert answer.error_code == ErrorCode.NONE
        return int(answer.producer_id)

    with RawConnection(port) as connection:
        return wait_until(given)


def leave_work_behind(cluster: BrokerCluster) -> None:
    """Have a topic deleted and a partition moved while a broker that both need is dying."""
    assert cluster.agreed().controller == 1, "it was the first, and has not gone since"
    cluster.pause(3)
    make = messages.AlterPartitionReassignmentsRequest
    partition = make.ReassignablePartition(partition_index=0, replicas=[3, 2])
    topic = make.ReassignableTopic(name="moving", partitions=[partition])
    answer = cluster.ask(1, make(timeout_ms=5_000, topics=[topic]), REASSIGN_VERSION)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
    cluster.brokers[3].kill()
    wait_until(lambda: cluster.brokers_in_tree() == {1, 2})
    deletion = messages.DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=100)
    cluster.ask(1, deletion, DELETE_VERSION)
    wait_until(lambda: cluster.topics_marked_in_tree() == {"doomed"})


def described(bootstrap: list[str]) -> Topics:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    found = {
        topic["name"]: (
            str(topic["topic_id"]),
            {each["partition_index"]: each["replica_nodes"] for each in topic["partitions"]},
        )
        for topic in admin.describe_topics()
        if not topic["is_internal"]
    }
    admin.close()
    return found


def knows_leaders(broker: KafkaZooKeeperProcess, topics: Topics) -> bool:
    admin = KafkaAdminClient(bootstrap_servers=[broker.bootstrap])
    found = [topic for topic in admin.describe_topics() if topic["name"] in topics]
    admin.close()
    counts = {topic["name"]: len(topic["partitions"]) for topic in found}
    leaders = {each["leader_id"] for topic in found for each in topic["partitions"]}
    requested = {name: len(replicas) for name, (_, replicas) in topics.items()}
    return counts == requested and leaders == set(BROKER_IDS)


def partitions_of(topic: str, kafka: KafkaZooKeeperProcess) -> dict[int, list[int]]:
    """The replicas of the partitions that a Kafka knows; none of a topic that it does not."""
    _, replicas = described([kafka.bootstrap]).get(topic, ("", {}))
    return replicas


def leaders_in(view: View) -> set[int]:
    return {each.leader for partitions in view.topics.values() for each in partitions.values()}


def consumed(bootstrap: list[str]) -> list[str]:
    consumer = Consumer({"bootstrap.servers": ",".join(bootstrap), "group.id": "unused"})
    consumer.assign([Position("alone", partition, 0) for partition in range(3)])
    values: list[str] = []
    while len(values) < RECORDS:
        messages = consumer.consume(RECORDS, SETTLED)
        assert messages, f"nothing comes after {len(values)} records"
        values += [message.value().decode() for message in messages if message.error() is None]
    consumer.close()
    return values


def test_kafka_finds_our_topics_with_our_assignments_and_ids(
    our_life: OurLife, kafkas: Brokers
) -> None:
    for broker in kafkas.values():
        found = described([broker.bootstrap])
        found["moving"] = our_life.topics["moving"]  # on its way, which is another test's
        assert found == our_life.topics
        assert set(found) == {"orders", "alone", "pairs", "moving"}


def test_kafka_reads_our_settings(kafkas: Brokers) -> None:
    for kind, name, key, value, source in SETTINGS:
        with RawConnection(kafkas[1].port) as connection:
            requested = "1" if kind == BROKER else name
            assert describe_config(connection, kind, requested, key) == (value, source), key


def test_kafka_serves_what_was_produced_at_our_brokers(kafkas: Brokers) -> None:
    assert sorted(consumed(bootstrap_of(kafkas))) == sorted(f"value-{n}" for n in range(RECORDS))


def test_kafka_finishes_the_reassignment_and_the_deletion_that_ours_began(
    our_life: OurLife, kafkas: Brokers
) -> None:
    cluster = our_life.cluster
    wait_until(lambda: described(bootstrap_of(kafkas))["moving"][1] == {0: [3, 2]})
    wait_until(lambda: cluster.topics_marked_in_tree() == set())
    assert "doomed" not in cluster.topics_in_tree()
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_of(kafkas))
    wait_until(lambda: admin.list_partition_reassignments() == {})
    admin.close()


def test_kafka_gives_no_producer_id_that_ours_have_given(
    our_life: OurLife, kafkas: Brokers
) -> None:
    given = {new_producer_id(broker.port) for broker in kafkas.values()}
    assert len(given) == 3
    assert min(given) > our_life.producer_id


def test_our_brokers_go_on_where_kafka_stopped(our_life: OurLife, kafkas: Brokers) -> None:
    """The last one here: it stops the Kafkas."""
    cluster = our_life.cluster
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_of(kafkas))
    admin.create_topics([NewTopic("by-kafka", 3, 2)])
    admin.close()
    for kafka in kafkas.values():
        wait_until(lambda at=kafka: len(partitions_of("by-kafka", at)) == 3, SETTLED)
    with RawConnection(kafkas[1].port) as connection:
        assert alter_configs(connection, TOPIC, "pairs", [("retention.ms", SET, "4711")]) == 0
        # So long that no broker deletes what is read below.
        assert alter_configs(connection, BROKER, "", [("log.retention.ms", SET, "8150000")]) == 0
    topics = described(bootstrap_of(kafkas))
    producer_id = new_producer_id(kafkas[1].port)
    for kafka in kafkas.values():
        assert kafka.stop() == 0, kafka.log[-3000:]
    wait_until(lambda: cluster.brokers_in_tree() == set())

    for broker in cluster.brokers.values():
        broker.start()
    view = cluster.agreed(lambda view: leaders_in(view) <= set(BROKER_IDS))
    assert view.controller in BROKER_IDS
    assert described(cluster.bootstrap) == topics
    assert sorted(consumed(cluster.bootstrap)) == sorted(f"value-{n}" for n in range(RECORDS))
    assert new_producer_id(cluster.brokers[1].port) > producer_id
    with RawConnection(cluster.brokers[2].port) as connection:
        of_topic = describe_config(connection, TOPIC, "pairs", "retention.ms")
        of_brokers = describe_config(connection, BROKER, "2", "log.retention.ms")
    assert of_topic == ("4711", FROM_TOPIC)
    assert of_brokers == ("8150000", FROM_ALL_BROKERS)

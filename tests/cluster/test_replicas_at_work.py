"""What replicas are for: moving partitions, deleting everywhere, reading in one's own rack."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from support.broker_cluster import BrokerCluster

from odradek.common.sentinels import DEBUGGING_REPLICA_ID, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.protocol import messages
from odradek.replication.read.replica_selector import RACK_AWARE
from odradek.testing.waiting import wait_until

TOPIC = "replicated"
RECORDS = 2_000
VALUE = b"v" * 1000
SECONDS_MAX = 90
ALTER_REASSIGNMENTS_VERSION = 0
LIST_OFFSETS_VERSION = 5
BYTES_PER_SECOND = 400_000
FETCH_BYTES_MAX = 1_000_000
"""A little less than `replica.fetch.max.bytes`."""
QUIET = {"log_level": 0}

StartCluster = Callable[..., BrokerCluster]


def admin_of(cluster: BrokerCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": ",".join(cluster.bootstrap), **QUIET})


def make_topic(cluster: BrokerCluster, assignment: list[list[int]]) -> None:
    topic = NewTopic(TOPIC, len(assignment), replica_assignment=assignment)
    admin = admin_of(cluster)
    admin.create_topics([topic])[TOPIC].result(SECONDS_MAX)


def write(cluster: BrokerCluster, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": ",".join(cluster.bootstrap), **QUIET})
    for number in range(RECORDS):
        value = b"%06d" % number + VALUE
        producer.produce(TOPIC, value, partition=number % partitions)
    assert producer.flush(SECONDS_MAX) == 0


def read(cluster: BrokerCluster, partition: int, count: int) -> list[int]:
    """The numbers of a partition's records, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(cluster.bootstrap),
            "group.id": "readers",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING)])
    found: list[Message] = []
    deadline = time.monotonic() + SECONDS_MAX
    while len(found) < count and time.monotonic() < deadline:
        found += [each for each in consumer.consume(count, 0.5) if each.error() is None]
    consumer.close()
    return [int((each.value() or b"")[:6]) for each in found]


def reassign(cluster: BrokerCluster, assignment: list[list[int]]) -> None:
    """Ask for other replicas of each partition."""
    make = messages.AlterPartitionReassignmentsRequest
    request = make(
        timeout_ms=SECONDS_MAX * 1000,
        topics=[
            make.ReassignableTopic(
                name=TOPIC,
                partitions=[
                    make.ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in enumerate(assignment)
                ],
            )
        ],
    )
    controller = cluster.view(cluster.running[0]).controller
    answer = cluster.ask(controller, request, ALTER_REASSIGNMENTS_VERSION)
    assert answer.error_code == 0, answer
    assert not any(each.error_code for each in answer.responses[0].partitions), answer


def offset_at(cluster: BrokerCluster, broker_id: int, timestamp: int) -> int:
    """An end of one broker's own replica; -1: it has none."""
    make = messages.ListOffsetsRequest
    requested = make.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [make.ListOffsetsTopic(name=TOPIC, partitions=[requested])]
    request = make(replica_id=DEBUGGING_REPLICA_ID, topics=topics)
    answer = cluster.ask(broker_id, request, LIST_OFFSETS_VERSION)
    return int(answer.topics[0].partitions[0].offset)


def wait_until_moved(cluster: BrokerCluster, assignment: list[list[int]]) -> None:
    def is_done() -> bool:
        partitions = cluster.view(cluster.running[0]).topics[TOPIC]
        return all(
            partitions[index].replicas == tuple(replicas) and partitions[index].leader in replicas
            for index, replicas in enumerate(assignment)
        )

    wait_until(is_done)


def test_a_reassignment_copies_the_records_to_the_target_replicas(
    cluster: BrokerCluster,
) -> None:
    make_topic(cluster, [[1], [1]])
    write(cluster, 2)
    reassign(cluster, [[2], [3, 2]])
    wait_until_moved(cluster, [[2], [3, 2]])
    cluster.brokers[1].kill()
    for partition in (0, 1):
        assert read(cluster, partition, RECORDS // 2) == list(range(partition, RECORDS, 2))


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_reassignment_takes_its_time(start_cluster: StartCluster, side: str) -> None:
    cluster = start_cluster()
    make_topic(cluster, [[1]])
    write(cluster, 1)
    replicas = f"{side}.replication.throttled.replicas"
    rate = f"{side}.replication.throttled.rate"
    changes = [ConfigResource(ResourceType.TOPIC, TOPIC)]
    changes[0].add_incremental_config(
        ConfigEntry(replicas, "*", incremental_operation=AlterConfigOpType.SET)
    )
    for broker_id in cluster.running:
        resource = ConfigResource(ResourceType.BROKER, str(broker_id))
        resource.add_incremental_config(
            ConfigEntry(rate, str(BYTES_PER_SECOND), incremental_operation=AlterConfigOpType.SET)
        )
        changes.append(resource)
    admin = admin_of(cluster)
    for change in changes:  # librdkafka takes one broker a call
        (altered,) = admin.incremental_alter_configs([change]).values()
        altered.result(SECONDS_MAX)
    wait_until(lambda: rate in cluster.brokers[2].log and rate in cluster.brokers[1].log)
    began = time.monotonic()
    reassign(cluster, [[2]])
    wait_until(lambda: offset_at(cluster, 2, LATEST_TIMESTAMP) == RECORDS)
    seconds = time.monotonic() - began
    # The first megabyte comes at once. It is over the bound for two and a half seconds, less the
    # part of a second's window that was over when it came. (Without a bound: 0.1 s in all.)
    assert seconds > FETCH_BYTES_MAX / BYTES_PER_SECOND - 1
    wait_until_moved(cluster, [[2]])
    assert read(cluster, 0, RECORDS) == list(range(RECORDS))


def test_records_are_deleted_at_every_replica_when_the_answer_comes(
    cluster: BrokerCluster,
) -> None:
    make_topic(cluster, [[1, 2, 3]])
    write(cluster, 1)
    before = TopicPartition(TOPIC, 0, 1234)
    admin = admin_of(cluster)
    (deleted,) = admin.delete_records([before]).values()
    assert deleted.result(SECONDS_MAX).low_watermark == 1234
    starts = [offset_at(cluster, broker_id, EARLIEST_TIMESTAMP) for broker_id in cluster.running]
    assert starts == [1234, 1234, 1234]


def test_a_consumer_reads_from_the_replica_in_its_rack(start_cluster: StartCluster) -> None:
    cluster = start_cluster(replica_selector_class=RACK_AWARE)
    make_topic(cluster, [[1, 2, 3]])
    write(cluster, 1)
    fetched_from: list[int] = []

    def note(text: str) -> None:
        partition = json.loads(text)["topics"].get(TOPIC, {}).get("partitions", {}).get("0")
        if partition is not None:
            fetched_from.append(partition["broker"])

    consumer = Consumer(
        {
            "bootstrap.servers": ",".join(cluster.bootstrap),
            "group.id": "readers",
            "client.rack": "rack-2",
            "statistics.interval.ms": 50,
            "stats_cb": note,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    found = 0
    deadline = time.monotonic() + SECONDS_MAX
    while (found < RECORDS or fetched_from[-1:] != [2]) and time.monotonic() < deadline:
        found += sum(each.error() is None for each in consumer.consume(RECORDS, 0.2))
    (last,) = fetched_from[-1:]  # what comes while it closes is no reading any more
    consumer.close()
    assert found == RECORDS
    assert last == 2
    assert cluster.view(1).topics[TOPIC][0].leader == 1

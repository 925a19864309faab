"""Snapshots: topics, records and committed offsets are as they were, for real clients."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Assigned
from kafka.admin import KafkaAdminClient

from odradek.testing import Broker
from odradek.testing.conditions import transaction_is

WAIT_SECONDS_MAX = 60.0
BROKER_SETTINGS = {"auto.create.topics.enable": "false"}


def produce(broker: Broker, topic: str, *values: bytes, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(WAIT_SECONDS_MAX) == 0


def commit(broker: Broker, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(broker: Broker, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, 0)], WAIT_SECONDS_MAX)
    consumer.close()
    offset: int = found.offset
    return offset


def test_topics_records_and_offsets_are_as_they_were(broker: Broker) -> None:
    broker.create_topic("orders", config={"retention.ms": "86400000"})
    broker.create_topic("empty", partitions=3)
    produce(broker, "orders", b"one", b"two", b"three")
    commit(broker, "g", "orders", 2)
    before = broker.topic("orders")
    records = broker.read("orders")
    snapshot = broker.snapshot()

    produce(broker, "orders", b"four")
    commit(broker, "g", "orders", 4)
    commit(broker, "other", "orders", 1)
    broker.create_topic("later")
    broker.delete_topic("empty")
    broker.restore(snapshot)

    assert broker.topics() == ["empty", "orders"]
    after = broker.topic("orders")
    assert (after.topic_id, after.config) == (before.topic_id, before.config)
    assert after.partitions[0].leader_epoch > before.partitions[0].leader_epoch
    assert broker.read("orders") == records
    assert committed(broker, "g", "orders") == 2
    assert broker.group("other").state == "Dead"
    assert len(broker.topic("empty").partitions) == 3
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
    )
    seen = [
        record.value
        for each in consumer.poll(timeout_ms=WAIT_SECONDS_MAX * 1000).values()
        for record in each
    ]
    assert seen == [b"one", b"two", b"three"]
    consumer.close()


def test_a_snapshot_can_be_restored_again_and_again(broker: Broker) -> None:
    broker.create_topic("orders")
    produce(broker, "orders", b"one")
    first = broker.snapshot()
    produce(broker, "orders", b"two")
    second = broker.snapshot()
    for snapshot, values in ((first, [b"one"]), (second, [b"one", b"two"]), (first, [b"one"])):
        broker.restore(snapshot)
        produce(broker, "orders", b"more")
        assert [record.value for record in broker.read("orders")] == [*values, b"more"]


def test_connected_clients_go_on_after_a_restore(broker: Broker) -> None:
    broker.create_topic("orders")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="mine")
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    consumer.assign([Assigned("orders", 0)])
    consumer.seek(Assigned("orders", 0), 0)
    producer.send("orders", b"one").get(WAIT_SECONDS_MAX)
    snapshot = broker.snapshot()
    assert [each.value for each in poll(consumer)] == [b"one"]
    broker.restore(snapshot)
    producer.send("orders", b"two").get(WAIT_SECONDS_MAX)
    assert [(each.offset, each.value) for each in poll(consumer)] == [(1, b"two")]
    peers = {each.peer for each in broker.requests.of("Produce", client_id="mine")}
    assert len(peers) == 1
    producer.close()
    consumer.close()


def poll(consumer: KafkaConsumer) -> list:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while time.monotonic() < deadline:
        found = [record for each in consumer.poll(timeout_ms=500).values() for record in each]
        if found:
            return found
    raise AssertionError("no record came")


def test_transactions_are_as_they_were(broker: Broker) -> None:
    broker.create_topic("orders")
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"}
    producer = Producer(settings)
    producer.init_transactions(WAIT_SECONDS_MAX)
    for value, end in (
        (b"kept", producer.commit_transaction),
        (b"dropped", producer.abort_transaction),
    ):
        producer.begin_transaction()
        producer.produce("orders", value)
        producer.flush(WAIT_SECONDS_MAX)
        end(WAIT_SECONDS_MAX)
    # The end of a transaction is answered before its markers are written.
    broker.wait_until(transaction_is("t", "CompleteAbort"), timeout=WAIT_SECONDS_MAX)
    snapshot = broker.snapshot()
    state = broker.transaction("t")
    broker.reset()
    broker.restore(snapshot)
    assert broker.transaction("t") == state
    assert [each.value for each in broker.read("orders", committed_only=True)] == [b"kept"]
    again = Producer(settings)
    again.init_transactions(WAIT_SECONDS_MAX)
    again.begin_transaction()
    again.produce("orders", b"next")
    again.commit_transaction(WAIT_SECONDS_MAX)
    broker.wait_until(transaction_is("t", "CompleteCommit"), timeout=WAIT_SECONDS_MAX)
    assert [each.value for each in broker.read("orders", committed_only=True)] == [b"kept", b"next"]


def test_records_that_were_deleted_stay_so(broker: Broker) -> None:
    broker.create_topic("orders")
    produce(broker, "orders", b"one", b"two", b"three")
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.delete_records({Assigned("orders", 0): 2})
    admin.close()
    snapshot = broker.snapshot()
    broker.restore(snapshot)
    assert [(each.offset, each.value) for each in broker.read("orders")] == [(2, b"three")]
    assert broker.topic("orders").partitions[0].log_start_offset == 2


def test_records_that_retention_took_come_back(broker: Broker) -> None:
    broker.create_topic("orders", config={"retention.ms": "60000"})
    produce(broker, "orders", b"one")
    snapshot = broker.snapshot()
    broker.advance_time(minutes=5)
    assert broker.read("orders") == []
    broker.restore(snapshot)
    assert [each.value for each in broker.read("orders")] == [b"one"]


def test_a_snapshot_outlives_a_restart_and_what_is_restored_too() -> None:
    with Broker(log_dirs=2) as broker:
        broker.create_topic("orders", partitions=4)
        produce(broker, "orders", *[b"%d" % number for number in range(50)])
        snapshot = broker.snapshot()
        broker.restart(clean=False)
        broker.delete_topic("orders")
        broker.restore(snapshot)
        broker.restart()
        assert len(broker.read("orders")) == 50
        produce(broker, "orders", b"more")
        assert len(broker.read("orders")) == 51

"""Looking into a broker without a client: what is told is what real clients did."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing import Broker
from odradek.testing.control.client import ControlError
from odradek.testing.inspection.states import Snapshot

WAIT_SECONDS_MAX = 60.0
BROKER_SETTINGS = {"auto.create.topics.enable": "false"}


def test_records_are_read_as_they_were_produced(broker: Broker) -> None:
    broker.create_topic("orders", partitions=3, config={"retention.ms": "-1"})
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, compression_type="gzip")
    headers = [("trace", b"1"), ("empty", b"")]
    producer.send(
        "orders", b"value", key=b"key", partition=1, timestamp_ms=1_700_000_000_123, headers=headers
    ).get(WAIT_SECONDS_MAX)
    producer.send("orders", None, key=b"tombstone", partition=2).get(WAIT_SECONDS_MAX)
    producer.close()
    first, second = broker.read("orders")
    assert (first.topic, first.partition, first.offset) == ("orders", 1, 0)
    assert (first.key, first.value, first.timestamp) == (b"key", b"value", 1_700_000_000_123)
    assert first.headers == (("trace", b"1"), ("empty", b""))
    assert (second.partition, second.key, second.value) == (2, b"tombstone", None)
    assert broker.read("orders", 1) == [first]
    assert broker.read("orders", 0) == []


def test_more_than_one_page_of_records_is_read_whole(broker: Broker) -> None:
    broker.create_topic("big", config={"segment.bytes": str(1 << 20)})
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "batch.size": 200_000, "linger.ms": 5}
    )
    values = [b"%06d" % number + bytes(20_000) for number in range(400)]
    for value in values:
        producer.produce("big", value)
    assert producer.flush(WAIT_SECONDS_MAX) == 0
    assert sum(map(len, values)) > 4 << 20
    records = broker.read("big")
    assert [record.value for record in records] == values
    assert [record.offset for record in broker.read("big", offset=390)] == list(range(390, 400))
    state = broker.topic("big").partitions[0]
    assert (state.log_start_offset, state.high_watermark) == (0, 400)
    assert state.size > sum(map(len, values))


def test_aborted_and_open_transactions_are_left_out_if_requested(broker: Broker) -> None:
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(WAIT_SECONDS_MAX)
    for value, end in (
        (b"first", producer.commit_transaction),
        (b"second", producer.abort_transaction),
        (b"third", producer.commit_transaction),
    ):
        producer.begin_transaction()
        producer.produce("orders", value)
        producer.flush(WAIT_SECONDS_MAX)
        end(WAIT_SECONDS_MAX)
    producer.begin_transaction()
    producer.produce("orders", b"open")
    producer.flush(WAIT_SECONDS_MAX)
    values = [record.value for record in broker.read("orders")]
    assert values == [b"first", b"second", b"third", b"open"]
    assert all(record.is_transactional for record in broker.read("orders"))
    committed = [record.value for record in broker.read("orders", committed_only=True)]
    assert committed == [b"first", b"third"]
    (state,) = broker.transactions()
    assert (state.transactional_id, state.state, state.partitions) == (
        "t",
        "Ongoing",
        (("orders", 0),),
    )
    assert state.started is not None
    assert abs(state.started - time.time()) < 60
    (remembered,) = broker.producers("orders")
    assert remembered.producer_id == state.producer_id
    assert remembered.transaction_start == broker.topic("orders").partitions[0].last_stable_offset
    producer.abort_transaction(WAIT_SECONDS_MAX)  # is answered before its marker is written
    broker.wait_until(
        lambda each: each.producers("orders")[0].transaction_start is None,
        timeout=WAIT_SECONDS_MAX,
    )


def test_a_group_its_members_offsets_and_lag(broker: Broker) -> None:
    broker.create_topic("orders", partitions=2)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number in range(5):
        producer.send("orders", b"%d" % number, partition=0).get(WAIT_SECONDS_MAX)
    producer.close()
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "shippers",
            "client.id": "reader",
            "group.instance.id": "reader-1",
        }
    )
    consumer.subscribe(["orders"])
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    # librdkafka may hang in `close` if that comes before the assignment has.
    while broker.group("shippers").state != "Stable" or not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.02)
    consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
    group = broker.group("shippers")
    (member,) = group.members
    assert (member.client_id, member.instance_id) == ("reader", "reader-1")
    assert member.partitions == (("orders", 0), ("orders", 1))
    assert group.offsets == {("orders", 0): 3}
    assert (group.lag, group.lags) == (2, {("orders", 0): 2})
    assert (group.kind, group.generation) == ("classic", 1)
    assert broker.groups() == ["shippers"]
    consumer.close()
    assert broker.group("nobody").state == "Dead"


def test_a_topic_and_its_settings(broker: Broker) -> None:
    broker.create_topic("orders", partitions=2, config={"retention.ms": "1000"})
    topic = broker.topic("orders")
    assert (topic.config, len(topic.partitions)) == ({"retention.ms": "1000"}, 2)
    assert {(each.leader, each.replicas, each.isr) for each in topic.partitions} == {
        (1, (1,), (1,))
    }
    assert broker.topics() == ["orders"]
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers)
    assert consumer.topics() == {"orders"}
    consumer.close()
    broker.delete_topic("orders")
    assert broker.topics() == []


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda broker: broker.topic("none"), "there is no topic none"),
        (lambda broker: broker.read("none", 0), "has no replica of none-0"),
        (lambda broker: broker.create_topic("a/b"), "topic a/b is not made: .*a/b"),
        (lambda broker: broker.create_topic("x", 0), "topic x is not made: Number of partitions"),
        (lambda broker: broker.delete_topic("none"), "there is no topic none"),
        (lambda broker: broker.restore(Snapshot("9")), "has no snapshot '9'"),
    ],
    ids=["topic", "read", "name", "partitions", "delete", "snapshot"],
)
def test_what_cannot_be_answered_is_refused_in_a_sentence(
    broker: Broker, ask, sentence: str
) -> None:
    with pytest.raises(ControlError, match=sentence):
        ask(broker)

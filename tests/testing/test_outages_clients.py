"""Sessions, rebalances, producers and transactions, ended at a test's word."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError

from odradek.testing import Broker, faults
from odradek.testing.control.client import ControlError

WAIT_SECONDS_MAX = 60.0
BROKER_SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
}
NOT_HEARD_OF = faults.disconnect(client_id="one")
"""The client hears of nothing, so that it does not answer with a new join before it is looked."""
BROKER_TOPICS = {"orders": 2}


def new_consumer(broker: Broker, client_id: str, protocol: str = "classic") -> Consumer:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "g",
        "group.protocol": protocol,
        "client.id": client_id,
    }
    if protocol == "classic":
        settings["heartbeat.interval.ms"] = 200
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    return consumer


def poll_until_stable(broker: Broker, *consumers: Consumer, generation: int = 0) -> None:
    """Have consumers do their work until all of them share, in that generation or later."""
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        group = broker.group("g")
        everybody = len(group.members) == len(consumers)
        if group.state == "Stable" and everybody and group.generation >= generation:
            return
        assert time.monotonic() < deadline, "\n".join([str(group), *broker.requests.lines()])
        for each in consumers:
            each.poll(0.02)


def test_a_session_that_expires_gives_its_partitions_to_the_others(broker: Broker) -> None:
    one, other = new_consumer(broker, "one"), new_consumer(broker, "other")
    poll_until_stable(broker, one, other)
    before = broker.group("g")
    with broker.faults.during(NOT_HEARD_OF):
        (expired,) = broker.expire_session("g", "one")
        assert expired in {member.member_id for member in before.members}
        assert [member.client_id for member in broker.group("g").members] == ["other"]
    poll_until_stable(broker, one, other, generation=before.generation + 1)
    assert expired not in {member.member_id for member in broker.group("g").members}
    one.close()
    other.close()


def test_a_rebalance_is_forced_on_a_classic_group(broker: Broker) -> None:
    consumer = new_consumer(broker, "one")
    poll_until_stable(broker, consumer)
    before = broker.group("g")
    with broker.faults.during(NOT_HEARD_OF):
        broker.force_rebalance("g")
        assert broker.group("g").state == "PreparingRebalance"
    poll_until_stable(broker, consumer, generation=before.generation + 1)
    assert broker.group("g").members[0].member_id == before.members[0].member_id
    consumer.close()


def test_sessions_and_rebalances_of_a_consumer_group(broker: Broker) -> None:
    consumer = new_consumer(broker, "one", "consumer")
    poll_until_stable(broker, consumer)
    first = broker.group("g").generation
    broker.force_rebalance("g")
    poll_until_stable(broker, consumer, generation=first + 1)
    second = broker.group("g").generation
    with broker.faults.during(NOT_HEARD_OF):
        broker.expire_session("g")
        assert broker.group("g").members == ()
    poll_until_stable(broker, consumer, generation=second + 1)
    consumer.close()


def test_what_is_not_there_cannot_expire(broker: Broker) -> None:
    with pytest.raises(ControlError, match="there is no group g on this broker"):
        broker.expire_session("g")
    with pytest.raises(ControlError, match="there is no transactional id x on this broker"):
        broker.fence_producer("x")
    consumer = new_consumer(broker, "one")
    poll_until_stable(broker, consumer)
    with pytest.raises(ControlError, match="group g has no member two: in it is one-"):
        broker.expire_session("g", "two")
    consumer.close()


def open_transaction(broker: Broker) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "shipper"}
    )
    producer.init_transactions(WAIT_SECONDS_MAX)
    producer.begin_transaction()
    producer.produce("orders", b"value", partition=0)
    assert producer.flush(WAIT_SECONDS_MAX) == 0
    return producer


def test_a_fenced_producer_hears_of_it_and_its_records_are_aborted(broker: Broker) -> None:
    producer = open_transaction(broker)
    before = broker.transaction("shipper")
    assert before is not None
    producer_id, epoch = broker.fence_producer("shipper")
    assert (producer_id, epoch > before.epoch) == (before.producer_id, True)
    assert broker.read("orders", committed_only=True) == []
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(WAIT_SECONDS_MAX)
    assert refused.value.args[0].fatal()
    assert refused.value.args[0].name() in ("_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")


def test_a_producer_of_another_client_is_fenced(broker: Broker) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="packer")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("orders", b"value", partition=0).get(WAIT_SECONDS_MAX)
    broker.fence_producer("packer")
    with pytest.raises(KafkaError):
        producer.commit_transaction()
    producer.close(timeout=1)


def test_an_expired_transaction_is_aborted(broker: Broker) -> None:
    producer = open_transaction(broker)
    assert broker.producers("orders")[0].transaction_start == 0
    broker.expire_transaction("shipper")
    ended = broker.transaction("shipper")
    assert ended is not None
    assert ended.state == "CompleteAbort"
    assert broker.producers("orders")[0].transaction_start is None
    with pytest.raises(KafkaException):
        producer.commit_transaction(WAIT_SECONDS_MAX)
    with pytest.raises(ControlError, match="no transaction that could expire: it is CompleteAbort"):
        broker.expire_transaction("shipper")

"""Trials of the table of outages: real clients, a broker that something happens to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import confluent_kafka
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing import Broker, Cluster
from odradek.tools.docs.client_outcomes import CONFLUENT, KAFKA_PYTHON, OK

from .fault_clients import GIVE_UP_MS, PATIENT_MS, PRODUCERS

TOPIC = "orders"
GROUP = "shop"
WAIT_SECONDS = 60.0
OUTAGE_SECONDS = 0.5
"""How long one lasts at least that a client outlives by trying again."""


class Seen(NamedTuple):
    """What a client saw of an outage.

    Attributes:
        during: what it did meanwhile came to.
        after: the same, when the outage was over.
        records: the values of records that consumers of committed ones are given.
    """

    during: str
    after: str
    records: list[bytes]


Outage = Callable[[Any], Any]
"""Begins something with a broker or a cluster, and ends it: a context manager."""


@contextmanager
def killed(broker: Broker) -> Iterator[None]:
    """A broker that is killed, and started again."""
    broker.kill()
    yield
    broker.start()


@contextmanager
def wrong_clock(broker: Broker) -> Iterator[None]:
    """A broker whose clock is two hours behind."""
    broker.set_clock_wrong(-2 * 3600)
    yield
    broker.set_clock_wrong(0)


@contextmanager
def moved_leader(cluster: Cluster) -> Iterator[None]:
    """The other one of two brokers leads from then on."""
    old = cluster.brokers.index(cluster.leader_of(TOPIC, 0))
    cluster.move_leader(TOPIC, 0, to=2 - old)
    yield


@contextmanager
def killed_leader(cluster: Cluster) -> Iterator[None]:
    """The broker that leads is killed, and stays so."""
    cluster.leader_of(TOPIC, 0).kill()
    yield


def produce(
    client: str, place: Broker | Cluster, outage: Outage, give_up_ms: int = GIVE_UP_MS
) -> Seen:
    """Send a record before, during and after an outage, by a client that does not retry."""
    place.create_topic(TOPIC)
    producer = PRODUCERS[client](place, give_up_ms)
    try:
        assert producer.send(TOPIC, b"before") == OK
        with outage(place):
            during = producer.send(TOPIC, b"during")
        after = producer.send(TOPIC, b"after")
    finally:
        producer.close()
    return Seen(during, after, values_in(place))


def produce_patiently(client: str, place: Broker | Cluster, outage: Outage) -> Seen:
    """Send a record during an outage that ends, by a client that tries again."""
    place.create_topic(TOPIC)
    producer = PRODUCERS[client](place, PATIENT_MS)
    try:
        assert producer.send(TOPIC, b"before") == OK
        with ThreadPoolExecutor(1) as thread:
            with outage(place):
                sending = thread.submit(producer.send, TOPIC, b"during")
                threading.Event().wait(OUTAGE_SECONDS)
            during = sending.result(WAIT_SECONDS)
        after = producer.send(TOPIC, b"after")
    finally:
        producer.close()
    return Seen(during, after, values_in(place))


def commit_offsets(client: str, broker: Broker, outage: Callable[[Broker], object]) -> Seen:
    """Read a record, have something happen to the group, commit; then read on and commit again.

    Its records are those that the consumer was given, in order.
    """
    broker.create_topic(TOPIC)
    fill(broker, b"before")
    member = MEMBERS[client](broker)
    given = [member.read()]
    try:
        outage(broker)
        during = member.commit()
        fill(broker, b"after")
        while given[-1] != b"after":
            given.append(member.read())
        return Seen(during, member.commit(), given)
    finally:
        member.close()


def commit_transaction(client: str, broker: Broker, outage: Callable[[Broker], object]) -> Seen:
    """Send in a transaction, have something happen to its producer, commit; then begin anew."""
    broker.create_topic(TOPIC)
    producer = TRANSACTIONAL[client](broker)
    try:
        producer.send(b"before")
        assert producer.commit() == OK
        producer.send(b"during")
        outage(broker)
        during = producer.commit()
    finally:
        producer.close()
    again = TRANSACTIONAL[client](broker)
    try:
        again.send(b"after")
        return Seen(during, again.commit(), values_in(broker))
    finally:
        again.close()


def values_in(place: Broker | Cluster) -> list[bytes]:
    """What consumers of committed records find in the topic."""
    return [record.value or b"" for record in place.read(TOPIC, committed_only=True)]


def fill(broker: Broker, value: bytes) -> None:
    """Put a record into the topic."""
    producer = PRODUCERS[CONFLUENT](broker, PATIENT_MS)
    try:
        assert producer.send(TOPIC, value) == OK
    finally:
        producer.close()


class KafkaPythonMember:
    """kafka-python's consumer in a group."""

    def __init__(self, broker: Broker) -> None:
        self._consumer = KafkaConsumer(
            TOPIC,
            bootstrap_servers=broker.bootstrap_servers,
            group_id=GROUP,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
        )

    def read(self) -> bytes:
        """The next record; fails if there is none in time."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            for records in self._consumer.poll(timeout_ms=500, max_records=1).values():
                return bytes(records[0].value)
        raise AssertionError("the consumer was given no record")

    def commit(self) -> str:
        """Commit what was read; returns `OK`, or the client's name of the error."""
        try:
            self._consumer.commit()
        except Exception as error:
            name = type(error).__name__
            for partition in self._consumer.assignment():
                self._consumer.seek_to_beginning(partition)
            return name
        return OK

    def close(self) -> None:
        """Leave."""
        self._consumer.close(autocommit=False)


class ConfluentMember:
    """confluent-kafka's consumer in a group."""

    def __init__(self, broker: Broker) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "heartbeat.interval.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([TOPIC])

    def read(self) -> bytes:
        """See `KafkaPythonMember.read`."""
        message = self._consumer.poll(WAIT_SECONDS)
        assert message is not None, "the consumer was given no record"
        return bytes(message.value() or b"")

    def commit(self) -> str:
        """See `KafkaPythonMember.commit`."""
        try:
            self._consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as error:
            return str(error.args[0].name())
        return OK

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


class KafkaPythonTransaction:
    """kafka-python's transactional producer, in a transaction as soon as it sends."""

    def __init__(self, broker: Broker) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, transactional_id="transfers"
        )
        self._producer.init_transactions()

    def send(self, value: bytes) -> None:
        """Begin a transaction with a record, which is written when this returns."""
        self._producer.begin_transaction()
        self._producer.send(TOPIC, value).get(WAIT_SECONDS)

    def commit(self) -> str:
        """Commit; returns `OK`, or the client's name of the error."""
        try:
            self._producer.commit_transaction()
        except Exception as error:
            return type(error).__name__
        return OK

    def close(self) -> None:
        """Let it go, whatever is under way."""
        self._producer.close(timeout=0)


class ConfluentTransaction:
    """confluent-kafka's transactional producer; see `KafkaPythonTransaction`."""

    def __init__(self, broker: Broker) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": "transfers",
                "log_level": 0,
            }
        )
        self._producer.init_transactions(WAIT_SECONDS)

    def send(self, value: bytes) -> None:
        """See `KafkaPythonTransaction.send`."""
        self._producer.begin_transaction()
        self._producer.produce(TOPIC, value)
        assert self._producer.flush(WAIT_SECONDS) == 0

    def commit(self) -> str:
        """See `KafkaPythonTransaction.commit`."""
        try:
            self._producer.commit_transaction(WAIT_SECONDS)
        except confluent_kafka.KafkaException as error:
            return str(error.args[0].name())
        return OK

    def close(self) -> None:
        """See `KafkaPythonTransaction.close`."""
        with suppress(confluent_kafka.KafkaException):  # it was fenced
            self._producer.flush(0)


MEMBERS: dict[str, Callable[[Broker], KafkaPythonMember | ConfluentMember]] = {
    KAFKA_PYTHON: KafkaPythonMember,
    CONFLUENT: ConfluentMember,
}
TRANSACTIONAL: dict[str, Callable[[Broker], KafkaPythonTransaction | ConfluentTransaction]] = {
    KAFKA_PYTHON: KafkaPythonTransaction,
    CONFLUENT: ConfluentTransaction,
}

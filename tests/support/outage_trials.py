"""Trials of the table of outages: real clients, a broker that something happens to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import confluent_kafka
from kafka import KafkaConsumer

from odradek.testing import Broker, Cluster
from odradek.tools.docs.client_outcomes import CONFLUENT, KAFKA_PYTHON, OK

from .fault_clients import GIVE_UP_MS, PATIENT_MS, PRODUCERS
from .transactional_clients import CLIENTS, Refused, TransactionalClient

TOPIC = "orders"
GROUP = "shop"
WAIT_SECONDS = 60.0
TRANSACTION_MS = 60_000
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


def acknowledge(client: str, broker: Broker, outage: Callable[[Broker], object]) -> Seen:
    """Be given a record in a share group, have something happen to it, accept it; then go on.

    Its records are those that the member was given, in order.
    """
    assert client == CONFLUENT
    broker.create_topic(TOPIC)
    member = ShareMember(broker)
    try:
        fill(broker, b"before")
        given = member.read()
        outage(broker)
        during = member.accept()
        fill(broker, b"after")
        while given[-1] != b"after":
            given += member.read()
            after = member.accept()
        return Seen(during, after, given)
    finally:
        member.close()


def commit_transaction(client: str, broker: Broker, outage: Callable[[Broker], object]) -> Seen:
    """Send in a transaction, have something happen to its producer, commit; then begin anew."""
    broker.create_topic(TOPIC)

    def producer() -> TransactionalClient:
        made = CLIENTS[client](broker.bootstrap_servers, "transfers", TRANSACTION_MS)
        made.init()
        return made

    def send(made: TransactionalClient, value: str) -> None:
        made.begin()
        made.write(TOPIC, value)

    def commit(made: TransactionalClient) -> str:
        try:
            made.commit()
        except Refused as refused:
            return refused.name
        return OK

    with closing(producer()) as first:
        send(first, "before")
        assert commit(first) == OK
        send(first, "during")
        outage(broker)
        during = commit(first)
    with closing(producer()) as again:
        send(again, "after")
        return Seen(during, commit(again), values_in(broker))


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


class ShareMember:
    """confluent-kafka's consumer in a share group, which has begun at the end of the topic."""

    def __init__(self, broker: Broker) -> None:
        self._consumer = confluent_kafka.ShareConsumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": GROUP,
                "share.acknowledgement.mode": "explicit",
                "log_level": 0,
            }
        )
        self._consumer.subscribe([TOPIC])
        self._given: list[confluent_kafka.Message] = []
        deadline = time.monotonic() + WAIT_SECONDS
        while not any(each.is_loaded for each in broker.share_partitions(GROUP)):
            assert time.monotonic() < deadline, "the group has not begun"
            self._consumer.poll(timeout=0.2)

    def read(self) -> list[bytes]:
        """The values of the records that come next, in `WAIT_SECONDS`."""
        self._given = list(self._consumer.poll(timeout=WAIT_SECONDS))
        assert self._given, "the member was given no record"
        return [each.value() or b"" for each in self._given]

    def accept(self) -> str:
        """Accept what was read last; returns `OK`, or the client's name of the error."""
        for each in self._given:
            self._consumer.acknowledge(each, confluent_kafka.AcknowledgeType.ACCEPT)
        errors = [each for each in self._consumer.commit_sync().values() if each is not None]
        return str(errors[0].args[0].name()) if errors else OK

    def close(self) -> None:
        """Leave."""
        self._consumer.close()


MEMBERS: dict[str, Callable[[Broker], KafkaPythonMember | ConfluentMember]] = {
    KAFKA_PYTHON: KafkaPythonMember,
    CONFLUENT: ConfluentMember,
}

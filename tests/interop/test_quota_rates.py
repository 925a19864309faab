"""Clients with a byte quota get from odradek what they get from Apache Kafka, over half a minute.

The quota itself is not what either gives in so short a time. With Kafka's default of 11 windows of
a second, a client that begins gets what ten seconds allow at once; so much comes again whenever
those windows are over. So a real Kafka with the same quota and clients says what is right.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.testing.waiting import wait_until
from odradek.tools.conformance.brokers import start_kafka, start_odradek

# Three minutes of nothing but the same rates again: `make soak` has it.
pytestmark = [pytest.mark.interop, pytest.mark.soak, pytest.mark.timeout(900)]

SECONDS = 30.0
QUOTA = 400_000
VALUE_BYTES = 1000
REQUEST_BYTES = 8_192
"""Of a client's requests and answers at most: small beside the quota, so that one more or less does
not count."""
COMMIT_MS = 100
RECORDS = 60 * QUOTA // VALUE_BYTES
LOOK_SECONDS = 0.1
BEGUN_SECONDS_MAX = 120.0
DEVIATION_MAX = 0.05
ATTEMPTS = 3
"""A client that a busy machine held up is measured again, with fewer others beside it."""
COORDINATOR_COMES = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
}
"""How a broker answers until it has made the topic of offsets."""

PERFORMANCE = {
    "produce": "org.apache.kafka.tools.ProducerPerformance",
    "consume": "org.apache.kafka.tools.ConsumerPerformance",
}
MANY = "100000000"


class Endpoint(NamedTuple):
    """What clients need, and how Java and Go are run."""

    bootstrap: str
    java_command: list[str]
    go_program: str


@contextmanager
def running(*command: str) -> Iterator[None]:
    """A client in a process of its own."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def running_here(work: Callable[[Event], None]) -> Iterator[None]:
    """A client in a thread."""
    stop = Event()
    thread = Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def librdkafka(at: Endpoint, what: str, topic: str, name: str) -> Iterator[None]:
    settings = {"bootstrap.servers": at.bootstrap, "client.id": name}

    def produce(stop: Event) -> None:
        producer = Producer({**settings, "batch.size": REQUEST_BYTES})
        while not stop.is_set():
            try:
                producer.produce(topic, b"v" * VALUE_BYTES)
            except BufferError:
                producer.poll(LOOK_SECONDS)
        producer.purge()

    def consume(stop: Event) -> None:
        sizes = {"fetch.max.bytes": REQUEST_BYTES, "message.max.bytes": REQUEST_BYTES}
        sizes["max.partition.fetch.bytes"] = REQUEST_BYTES
        group = {"group.id": name, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, **sizes, **group, "auto.commit.interval.ms": COMMIT_MS})
        consumer.subscribe([topic])
        while not stop.is_set():
            consumer.consume(1000, LOOK_SECONDS)
        consumer.close()

    with running_here(produce if what == "produce" else consume):
        yield


@contextmanager
def java(at: Endpoint, what: str, topic: str, name: str) -> Iterator[None]:
    common = ("--bootstrap-server", at.bootstrap, "--topic", topic, "--num-records", MANY)
    own = [f"client.id={name}"]
    if what == "produce":
        own.append(f"batch.size={REQUEST_BYTES}")
        sizes = ("--record-size", str(VALUE_BYTES), "--throughput", "-1")
        properties = ["--command-property", *own]  # once: of several only the last counts
    else:
        own += [f"fetch.max.bytes={REQUEST_BYTES}", f"auto.commit.interval.ms={COMMIT_MS}"]
        sizes = ("--fetch-size", str(REQUEST_BYTES), "--group", name, "--timeout", "600000")
        properties = [word for each in own for word in ("--command-property", each)]
    command = (PERFORMANCE[what], *common, *sizes, *properties)
    with running(*at.java_command, *command):
        yield


@contextmanager
def go(at: Endpoint, what: str, topic: str, name: str) -> Iterator[None]:
    with running(at.go_program, what, at.bootstrap, topic, name, str(REQUEST_BYTES)):
        yield


CLIENTS = {"librdkafka": librdkafka, "java": java, "go": go}


def fill(bootstrap: str, topic: str) -> None:
    """Write what consumers read, in batches no larger than what they fetch."""
    producer = Producer({"bootstrap.servers": bootstrap, "batch.size": REQUEST_BYTES})
    for _ in range(RECORDS):
        producer.produce(topic, b"v" * VALUE_BYTES)
    producer.flush()


def bytes_in_time(count: Callable[[], int]) -> int:
    """How many bytes more are counted so long after the first ones."""
    wait_until(count, BEGUN_SECONDS_MAX, "the client has not begun")
    ends = time.monotonic() + SECONDS
    wait_until(lambda: time.monotonic() >= ends, 2 * SECONDS)
    return count() * VALUE_BYTES


def rates(at: Endpoint, names: Iterable[str], attempt: int) -> dict[str, float]:
    """Each client's rate, as a share of its quota."""
    admin = AdminClient({"bootstrap.servers": at.bootstrap})
    filled = f"filled-{attempt}"
    clients = {name: f"{name}-{attempt}" for name in names}
    topics = {name: clients[name] if name.startswith("produce") else filled for name in names}
    created = admin.create_topics([NewTopic(each, 1, 1) for each in {filled, *topics.values()}])
    for future in created.values():
        future.result()
    fill(at.bootstrap, filled)
    for client in clients.values():
        command = (sys.executable, "-m", "odradek", "quotas", "set", "--client-id", client)
        quotas = (f"producer_byte_rate={QUOTA}", f"consumer_byte_rate={QUOTA}")
        address = ("--bootstrap-server", at.bootstrap)
        subprocess.run([*command, *quotas, *address], check=True, capture_output=True)

    def measure(name: str) -> float:
        what, language = name.split("-")
        partition = TopicPartition(topics[name], 0)
        client = clients[name]
        look = Consumer({"bootstrap.servers": at.bootstrap, "group.id": client})

        def count() -> int:
            if what == "produce":
                return int(look.get_watermark_offsets(partition, timeout=60)[1])
            while True:
                try:
                    return max(int(look.committed([partition], timeout=60)[0].offset), 0)
                except KafkaException as error:
                    if error.args[0].code() not in COORDINATOR_COMES:
                        raise

        with CLIENTS[language](at, what, partition.topic, client):
            counted = bytes_in_time(count)
        look.close()
        return counted / QUOTA / SECONDS

    with ThreadPoolExecutor(len(clients)) as pool:
        return dict(zip(clients, pool.map(measure, clients), strict=True))


def test_rates_are_those_of_apache_kafka(
    kafka_libs: Path, java_command: list[str], go_program: str, tmp_path: Path
) -> None:
    settings = {"log.retention.ms": "-1"}
    with ExitStack() as stack:
        brokers = [
            stack.enter_context(start_kafka(tmp_path / "kafka", kafka_libs, settings)),
            stack.enter_context(start_odradek(tmp_path / "odradek", settings)),
        ]
        endpoints = [Endpoint(each.bootstrap, java_command, go_program) for each in brokers]
        differ = [f"{what}-{language}" for what in ("produce", "consume") for language in CLIENTS]
        for attempt in range(ATTEMPTS):
            with ThreadPoolExecutor(2) as pool:
                of_kafka, of_odradek = pool.map(rates, endpoints, [differ] * 2, [attempt] * 2)
            shown = {name: (of_odradek[name], of_kafka[name]) for name in differ}
            print("shares of the quota, odradek's and Kafka's:", shown)
            differ = [name for name in differ if deviation(*shown[name]) > DEVIATION_MAX]
            if not differ:
                break
    assert not differ, {name: shown[name] for name in differ}


def deviation(ours: float, kafkas: float) -> float:
    """By what part of Kafka's rate ours differs from it."""
    return abs(ours / kafkas - 1)

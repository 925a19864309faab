"""What is asked of each broker; each load gives figures by name.

`rate` is in requests or records a second, `cpu_us` the broker's own processor time for one of
them in microseconds, and names that end in `_ms` are times of a client.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .peers import Peer, answers

Figures = dict[str, float]
PERFORMANCE_SECONDS_MAX = 300
ROUND_TRIPS = 1000
ROUND_TRIPS_BEFORE = 100
PARTITIONS_MANY = 1000
GIGABYTE = 1 << 30
API_VERSIONS_REQUEST = bytes.fromhex("0000000a001200000000002affff")


class Tools(NamedTuple):
    """Programs of others, and how long the loads are.

    Attributes:
        loader: the compiled loader of `benchmarks/load`.
        jars: a folder with Kafka's jars.
        seconds: how long a load of requests goes on.
        scale: 1.0 for the full numbers of records.
    """

    loader: Path
    jars: Path
    seconds: float
    scale: float


class Load(NamedTuple):
    """One row of the table: `run(peer, tools)` gives its figures."""

    name: str
    run: Callable[[Peer, Tools], Figures]


@contextlib.contextmanager
def fresh_topic(peer: Peer, partitions: int = 1) -> Iterator[str]:
    """A topic for one slot, gone afterwards."""
    topic = peer.topic(partitions)
    try:
        yield topic
    finally:
        peer.delete(topic)


# -- one-record requests -----------------------------------------------------------------------


def small_produce(connections: int, depth: int, idle: int = 0) -> Load:
    """Produce requests of one record of 100 bytes, acks=1, so many in flight and no more."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic, idle_connections(peer, idle):
            return _loaded(peer, tools, topic, connections, depth)

    flight = f"{connections} connections" if connections > 1 else "1 connection"
    name = f"Produce, {flight}"
    name += f" x {depth} in flight" if depth > 1 else ""
    return Load(name + (f", {idle} idle ones" if idle else ""), run)


def _loaded(peer: Peer, tools: Tools, topic: str, connections: int, depth: int) -> Figures:
    before = peer.cpu_seconds()
    done = subprocess.run(
        [
            *(str(tools.loader), "-address", peer.address, "-topic", topic),
            *("-connections", str(connections), "-depth", str(depth)),
            *("-seconds", str(tools.seconds)),
        ],
        check=True,
        capture_output=True,
    )
    cpu = peer.cpu_seconds() - before
    told = json.loads(done.stdout)
    if told["errors"]:
        raise SystemExit(f"{peer.name} answered {told['errors']} requests with an error")
    return {
        "rate": told["rate"],
        "cpu_us": cpu / told["requests"] * 1e6,
        "p50_ms": told["p50_ms"],
        "p99_ms": told["p99_ms"],
    }


@contextlib.contextmanager
def idle_connections(peer: Peer, count: int) -> Iterator[None]:
    """Connections that ask nothing, after one request each."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", peer.port), 10))
            sock.sendall(API_VERSIONS_REQUEST)
        yield


# -- Kafka's own performance tools -------------------------------------------------------------


def producer_performance(record_bytes: int, acks: str, compression: str = "none") -> Load:
    """Kafka's ProducerPerformance, as fast as it goes."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic:
            return _produced(peer, tools, topic, record_bytes, acks, compression)

    size = "1 KB" if record_bytes == 1000 else f"{record_bytes} B"
    return Load(f"ProducerPerformance {size}, acks={acks}, {compression}", run)


def _produced(
    peer: Peer, tools: Tools, topic: str, record_bytes: int, acks: str, compression: str
) -> Figures:
    records = int((2_000_000 if record_bytes == 100 else 500_000) * tools.scale)
    before = peer.cpu_seconds()
    output = _java_tool(
        tools,
        "ProducerPerformance",
        *("--topic", topic, "--num-records", str(records), "--record-size", str(record_bytes)),
        *("--throughput", "-1", "--producer-props", f"bootstrap.servers={peer.address}"),
        *(f"acks={acks}", f"compression.type={compression}"),
    )
    cpu = peer.cpu_seconds() - before
    found = re.search(rf"{records} records sent, ([\d.]+) records/sec", output)
    if found is None:
        raise SystemExit(f"ProducerPerformance on {peer.name} said: {output}")
    return {"rate": float(found[1]), "cpu_us": cpu / records * 1e6}


def consumer_performance(record_bytes: int, compression: str = "none") -> Load:
    """Kafka's ConsumerPerformance, over a topic that its producer filled."""

    def run(peer: Peer, tools: Tools) -> Figures:
        records = int((2_000_000 if record_bytes == 100 else 500_000) * tools.scale)
        with fresh_topic(peer) as topic:
            _produced(peer, tools, topic, record_bytes, "1", compression)
            before = peer.cpu_seconds()
            output = _java_tool(
                tools,
                "ConsumerPerformance",
                *("--bootstrap-server", peer.address, "--topic", topic),
                *("--num-records", str(records), "--timeout", "60000"),
            )
            cpu = peer.cpu_seconds() - before
        lines = [line.split(", ") for line in output.splitlines() if line.count(",") >= 9]
        if len(lines) < 2 or int(float(lines[-1][4])) < records:
            raise SystemExit(f"ConsumerPerformance on {peer.name} said: {output}")
        told = dict(zip(lines[0], lines[-1], strict=True))
        return {"rate": float(told["fetch.nMsg.sec"]), "cpu_us": cpu / records * 1e6}

    size = "1 KB" if record_bytes == 1000 else f"{record_bytes} B"
    return Load(f"ConsumerPerformance {size}, {compression}", run)


def _java_tool(tools: Tools, name: str, *arguments: str) -> str:
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    command = ["java", "-Xmx512m", quiet, "-cp", f"{tools.jars}/*"]
    done = subprocess.run(
        [*command, f"org.apache.kafka.tools.{name}", *arguments],
        capture_output=True,
        text=True,
        timeout=PERFORMANCE_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{name} failed: {done.stdout}{done.stderr}")
    return done.stdout


# -- round trips -------------------------------------------------------------------------------


def kafka_python_round_trip() -> Load:
    """One record to the broker and back, kafka-python on both sides, again and again."""

    def run(peer: Peer, tools: Tools) -> Figures:
        from kafka import KafkaConsumer, KafkaProducer, TopicPartition

        with fresh_topic(peer) as topic:
            producer = KafkaProducer(bootstrap_servers=peer.address)
            consumer = KafkaConsumer(bootstrap_servers=peer.address, auto_offset_reset="earliest")
            consumer.assign([TopicPartition(topic, 0)])

            def once() -> None:
                producer.send(topic, b"x" * 100)
                while not consumer.poll(timeout_ms=1000):
                    pass

            figures = _round_trips(peer, tools, once)
            producer.close()
            consumer.close()
        return figures

    return Load("kafka-python round trip", run)


def confluent_round_trip(partitions: int = 1) -> Load:
    """The same by confluent-kafka; with many partitions, all of them are in the fetch session."""

    def run(peer: Peer, tools: Tools) -> Figures:
        from confluent_kafka import Consumer, Producer, TopicPartition

        with fresh_topic(peer, partitions) as topic:
            where = {"bootstrap.servers": peer.address, "log_level": 2}
            producer = Producer({**where, "linger.ms": 0})
            consumer = Consumer({**where, "group.id": "bench", "enable.auto.commit": False})
            consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])

            def once() -> None:
                producer.produce(topic, b"x" * 100, partition=0)
                producer.poll(0)
                while consumer.poll(1.0) is None:
                    pass

            figures = _round_trips(peer, tools, once)
            consumer.close()
        return figures

    name = "confluent-kafka round trip"
    return Load(name if partitions == 1 else f"{name}, {partitions} partitions", run)


def _round_trips(peer: Peer, tools: Tools, once: Callable[[], None]) -> Figures:
    for _ in range(ROUND_TRIPS_BEFORE):
        once()
    count = int(ROUND_TRIPS * tools.scale)
    times = []
    before = peer.cpu_seconds()
    for _ in range(count):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    cpu = peer.cpu_seconds() - before
    times.sort()
    return {
        "p50_ms": statistics.median(times) * 1e3,
        "p99_ms": times[count * 99 // 100] * 1e3,
        "cpu_us": cpu / count * 1e6,
    }


# -- memory ------------------------------------------------------------------------------------


def memory_after_a_gigabyte() -> Load:
    """Resident memory once 1 GB of records of 1 KB was produced."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic:
            records = int(GIGABYTE / 1000 * tools.scale)
            _java_tool(
                tools,
                "ProducerPerformance",
                *("--topic", topic, "--num-records", str(records), "--record-size", "1000"),
                *("--throughput", "-1", "--producer-props"),
                *(f"bootstrap.servers={peer.address}", "acks=1"),
            )
            return {"memory_mb": peer.resident_mb()}

    return Load("memory after 1 GB produced", run)


def idle_connections_cost(count: int) -> Load:
    """Memory of connections that are silent, and what 16 busy ones lose by them."""

    def run(peer: Peer, tools: Tools) -> Figures:
        with fresh_topic(peer) as topic:
            alone = _loaded(peer, tools, topic, 16, 1)["rate"]
            before = peer.resident_mb()
            with idle_connections(peer, count):
                if not answers(peer.port):
                    raise SystemExit(f"{peer.name} does not answer beside {count} connections")
                memory = peer.resident_mb() - before
                beside = _loaded(peer, tools, topic, 16, 1)["rate"]
        return {"kb_each": memory * 1000 / count, "busy_loss": 1 - beside / alone}

    return Load(f"{count} idle connections", run)


LOADS = [
    small_produce(1, 1),
    small_produce(16, 1),
    small_produce(4, 8),
    small_produce(16, 1, idle=256),
    *(producer_performance(size, acks) for size in (100, 1000) for acks in ("1", "all")),
    producer_performance(1000, "all", "lz4"),
    producer_performance(1000, "all", "zstd"),
    consumer_performance(100),
    consumer_performance(1000),
    kafka_python_round_trip(),
    confluent_round_trip(),
    confluent_round_trip(PARTITIONS_MANY),
    memory_after_a_gigabyte(),
    idle_connections_cost(5000),
]

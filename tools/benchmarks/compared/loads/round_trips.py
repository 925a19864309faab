"""One record to the broker and back, by a Python client on both sides, again and again."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from ..peers import Failed, Peer
from .load import ComparedLoad, Figures, Tools, fresh_topic

ROUND_TRIPS = 1000
ROUND_TRIPS_BEFORE = 100
POLL_SECONDS = 1.0
POLLS_MAX = 30


def kafka_python_round_trip() -> ComparedLoad:
    """By kafka-python."""

    def run(peer: Peer, tools: Tools) -> Figures:
        from kafka import KafkaConsumer, KafkaProducer, TopicPartition

        with fresh_topic(peer) as topic:
            producer = KafkaProducer(bootstrap_servers=peer.address)
            consumer = KafkaConsumer(bootstrap_servers=peer.address, auto_offset_reset="earliest")
            consumer.assign([TopicPartition(topic, 0)])

            def send() -> None:
                producer.send(topic, b"x" * 100)

            def receive() -> bool:
                return bool(consumer.poll(timeout_ms=int(POLL_SECONDS * 1000)))

            try:
                return _round_trips(peer, tools, send, receive)
            finally:
                producer.close(timeout=POLL_SECONDS)
                consumer.close()

    return ComparedLoad("kafka-python round trip", run)


def confluent_round_trip(partitions: int = 1) -> ComparedLoad:
    """By confluent-kafka; with many partitions, all of them are in the fetch session."""

    def run(peer: Peer, tools: Tools) -> Figures:
        from confluent_kafka import Consumer, Producer, TopicPartition

        with fresh_topic(peer, partitions) as topic:
            where = {"bootstrap.servers": peer.address, "log_level": 2}
            producer = Producer({**where, "linger.ms": 0})
            consumer = Consumer({**where, "group.id": "bench", "enable.auto.commit": False})
            consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])

            def send() -> None:
                producer.produce(topic, b"x" * 100, partition=0)
                producer.poll(0)

            try:
                return _round_trips(
                    peer, tools, send, lambda: consumer.poll(POLL_SECONDS) is not None
                )
            finally:
                consumer.close()

    name = "confluent-kafka round trip"
    return ComparedLoad(name if partitions == 1 else f"{name}, {partitions} partitions", run)


def _round_trips(
    peer: Peer, tools: Tools, send: Callable[[], None], receive: Callable[[], bool]
) -> Figures:
    def once() -> None:
        send()
        for _ in range(POLLS_MAX):
            if receive():
                return
        raise Failed(f"a record did not come back within {POLLS_MAX * POLL_SECONDS:.0f} s")

    for _ in range(ROUND_TRIPS_BEFORE):
        once()
    times = []
    before = peer.cpu_seconds()
    for _ in range(tools.count(ROUND_TRIPS)):
        began = time.perf_counter()
        once()
        times.append(time.perf_counter() - began)
    cpu = peer.cpu_seconds() - before
    return {**of_times(times), "cpu_us": cpu / len(times) * 1e6}


def of_times(seconds: list[float]) -> Figures:
    """The median and the 99th percentile, in milliseconds."""
    ordered = sorted(seconds)
    return {
        "p50_ms": statistics.median(ordered) * 1e3,
        "p99_ms": ordered[len(ordered) * 99 // 100] * 1e3,
    }

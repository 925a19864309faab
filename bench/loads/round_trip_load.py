"""A record to the broker and back, by clients that people use."""

from __future__ import annotations

import contextlib
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Any

from ..cluster import TargetCluster, new_name
from ..errors import BenchError, Unavailable
from ..figures import Figures, Measured
from ..target import BenchTarget
from .load import WARM_UP_SHARE, Load

VALUE = b"v" * 100
RECORD_SECONDS_MAX = 30.0

CONFLUENT_NAMES = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
    "ssl.key.password": ("ssl.key.password",),
}
"""What librdkafka calls Kafka's settings of TLS, whose PEM files it can read."""

Client = Callable[[BenchTarget, str], contextlib.AbstractContextManager[Callable[[], None]]]
"""Gives a function that sends a record to a topic and waits until it is back."""


def kafka_python_round_trip() -> Load:
    """kafka-python on both sides."""
    return _load("kafka-python", _kafka_python)


def confluent_round_trip() -> Load:
    """confluent-kafka on both sides, without lingering."""
    return _load("confluent-kafka", _confluent)


def _load(name: str, client: Client) -> Load:
    def run(target: BenchTarget, seconds: float) -> Figures:
        with (
            TargetCluster(target) as cluster,
            cluster.topic() as topic,
            client(target, topic.name) as once,
        ):
            once()  # connecting takes as long as it takes
            _repeat(once, seconds * WARM_UP_SHARE, array("d"))
            with Measured(target) as measured:
                _repeat(once, seconds, measured.latencies)
        return measured.figures(rate=False)

    about = f"one record of {len(VALUE)} B to the broker and back, {name} as producer and consumer"
    return Load(f"{name} round trip", about, run)


def _repeat(once: Callable[[], None], seconds: float, latencies: array[float]) -> None:
    deadline = time.perf_counter() + seconds
    while (began := time.perf_counter()) < deadline:
        once()
        latencies.append(time.perf_counter() - began)


@contextlib.contextmanager
def _kafka_python(target: BenchTarget, topic: str) -> Iterator[Callable[[], None]]:
    try:
        from kafka import KafkaConsumer, KafkaProducer, TopicPartition
        from kafka.errors import KafkaError
    except ImportError:
        raise Unavailable("kafka-python is not installed: pip install kafka-python") from None
    where: dict[str, Any] = {"bootstrap_servers": target.address}
    context = target.ssl_context()
    if context is not None:
        where |= {"security_protocol": "SSL", "ssl_context": context}
    try:
        with contextlib.ExitStack() as stack:
            producer = KafkaProducer(**where)
            stack.callback(producer.close, timeout=5)
            consumer = KafkaConsumer(**where, auto_offset_reset="earliest")
            stack.callback(consumer.close)
            consumer.assign([TopicPartition(topic, 0)])

            def once() -> None:
                producer.send(topic, VALUE)
                _until(lambda: bool(consumer.poll(timeout_ms=1000)), "kafka-python")

            yield once
    except KafkaError as error:
        raise BenchError(f"kafka-python failed: {error}") from error


@contextlib.contextmanager
def _confluent(target: BenchTarget, topic: str) -> Iterator[Callable[[], None]]:
    try:
        from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
    except ImportError:
        raise Unavailable("confluent-kafka is not installed: pip install confluent-kafka") from None
    where: dict[str, Any] = {"bootstrap.servers": target.address, "log_level": 2}
    where |= _confluent_tls(target)
    try:
        producer = Producer({**where, "linger.ms": 0})
        consumer = Consumer({**where, "group.id": new_name(), "enable.auto.commit": False})
    except KafkaException as error:
        raise BenchError(f"confluent-kafka failed: {error}") from error

    def arrived() -> bool:
        producer.poll(0)
        record = consumer.poll(1.0)
        error = None if record is None else record.error()
        if error is not None:
            raise BenchError(f"confluent-kafka failed: {error.str()}")
        return record is not None

    def once() -> None:
        producer.produce(topic, VALUE, partition=0)
        _until(arrived, "confluent-kafka")

    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        yield once
    finally:
        consumer.close()


def _confluent_tls(target: BenchTarget) -> dict[str, str]:
    if not target.tls:
        return {}
    settings = {"security.protocol": "SSL"}
    for key, names in CONFLUENT_NAMES.items():
        if key in target.tls:
            settings |= dict.fromkeys(names, target.tls[key])
    if target.tls.get("ssl.endpoint.identification.algorithm") == "":
        settings["ssl.endpoint.identification.algorithm"] = "none"
    return settings


def _until(arrived: Callable[[], bool], client: str) -> None:
    deadline = time.monotonic() + RECORD_SECONDS_MAX
    while not arrived():
        if time.monotonic() > deadline:
            raise BenchError(f"{client} got no record back within {RECORD_SECONDS_MAX:g} s")

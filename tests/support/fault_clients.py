"""Producers of real clients that tell by a word what they saw of a fault."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import aiokafka
import confluent_kafka
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from odradek.testing import Broker
from odradek.tools.docs.client_outcomes import AIOKAFKA, CONFLUENT, IDEMPOTENT, KAFKA_PYTHON, OK

GIVE_UP_MS = 1500
"""How long a client waits for an answer."""

PATIENT_MS = 8000
"""The same on a machine that has turned out to be busy."""

SEND_SECONDS_MAX = 60.0
"""For one send, whatever comes of it; a client that is silent for longer has hung."""

READ_SECONDS_MAX = 60.0
"""For all records; a consumer that is silent for longer has hung."""


def read_with_kafka_python(
    address: str, topic: str, count: int, give_up_ms: int = GIVE_UP_MS
) -> str:
    """Read so many records from the beginning; `OK`, or the client's name of the error."""
    consumer = KafkaConsumer(
        bootstrap_servers=address,
        consumer_timeout_ms=int(READ_SECONDS_MAX * 1000),
        request_timeout_ms=give_up_ms,
        fetch_max_wait_ms=200,
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=50,
        auto_offset_reset="earliest",
    )
    try:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        for number, record in enumerate(consumer):
            assert record.value == b"%d" % number
            if number == count - 1:
                return OK
        return "silence"
    except Exception as error:
        return type(error).__name__
    finally:
        consumer.close()


def read_with_confluent(address: str, topic: str, count: int, give_up_ms: int = GIVE_UP_MS) -> str:
    """Read so many records from the beginning; `OK`, or the client's name of the error."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "socket.timeout.ms": give_up_ms,
            "fetch.wait.max.ms": 200,
            "fetch.error.backoff.ms": 10,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "log_level": 0,
        }
    )
    values: list[bytes] = []
    deadline = time.monotonic() + READ_SECONDS_MAX
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                return str(error.name())
            values.append(message.value() or b"")
    finally:
        consumer.close()
    return OK if values == [b"%d" % number for number in range(count)] else "silence"


def read_with_aiokafka(address: str, topic: str, count: int, give_up_ms: int = GIVE_UP_MS) -> str:
    """Read so many records from the beginning; `OK`, or the client's name of the error."""
    return asyncio.run(_read_with_aiokafka(address, topic, count, give_up_ms))


async def _read_with_aiokafka(
    address: str, topic: str, count: int, give_up_ms: int = GIVE_UP_MS
) -> str:
    consumer: Any = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=address,
        request_timeout_ms=give_up_ms,
        fetch_max_wait_ms=200,
        retry_backoff_ms=10,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        async with asyncio.timeout(READ_SECONDS_MAX):
            for number in range(count):
                record = await consumer.getone()
                assert record.value == b"%d" % number
    except Exception as error:
        return type(error).__name__
    finally:
        await consumer.stop()
    return OK


READERS: dict[str, Callable[[str, str, int, int], str]] = {
    KAFKA_PYTHON: read_with_kafka_python,
    CONFLUENT: read_with_confluent,
    AIOKAFKA: read_with_aiokafka,
}


def ask_with_kafka_python(address: str, give_up_ms: int = GIVE_UP_MS) -> str:
    """Ask for the topics; `OK`, or the client's name of the error."""
    try:
        consumer = KafkaConsumer(
            bootstrap_servers=address,
            bootstrap_timeout_ms=give_up_ms,
            request_timeout_ms=give_up_ms,
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=50,
        )
    except Exception as error:
        return type(error).__name__
    try:
        consumer.topics()
    finally:
        consumer.close()
    return OK


def ask_with_confluent(address: str, give_up_ms: int = GIVE_UP_MS) -> str:
    """Ask for the topics; `OK`, or the client's name of the error."""
    backoff = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
    client = AdminClient({"bootstrap.servers": address, "log_level": 0, **backoff})
    try:
        client.list_topics(timeout=give_up_ms / 1000)
    except confluent_kafka.KafkaException as error:
        return str(error.args[0].name())
    return OK


def ask_with_aiokafka(address: str, give_up_ms: int = GIVE_UP_MS) -> str:
    """Ask for the topics; `OK`, or the client's name of the error."""
    return asyncio.run(_ask_with_aiokafka(address, give_up_ms))


async def _ask_with_aiokafka(address: str, give_up_ms: int = GIVE_UP_MS) -> str:
    consumer: Any = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=address, request_timeout_ms=give_up_ms
    )
    try:
        await consumer.start()
        await consumer.topics()
    except Exception as error:
        return type(error).__name__
    finally:
        await consumer.stop()
    return OK


ASKERS: dict[str, Callable[[str, int], str]] = {
    KAFKA_PYTHON: ask_with_kafka_python,
    CONFLUENT: ask_with_confluent,
    AIOKAFKA: ask_with_aiokafka,
}


class FaultProducer(Protocol):
    """Sends records one by one."""

    def send(self, topic: str, value: bytes) -> str:
        """Send one, and wait; returns `OK`, or the client's name of the error."""

    def close(self) -> None:
        """Let it go, whatever is under way."""


class KafkaPythonProducer:
    """kafka-python's; without retries unless it is idempotent."""

    def __init__(
        self, broker: Broker, give_up_ms: int = GIVE_UP_MS, *, idempotent: bool = False
    ) -> None:
        once = {"acks": 1, "enable_idempotence": False, "retries": 0}
        self._producer = KafkaProducer(
            **broker.client_settings(KAFKA_PYTHON),
            linger_ms=0,
            request_timeout_ms=give_up_ms,
            delivery_timeout_ms=6 * give_up_ms,
            retry_backoff_ms=10,
            reconnect_backoff_ms=10,
            reconnect_backoff_max_ms=50,
            **({"enable_idempotence": True} if idempotent else once),
        )

    def send(self, topic: str, value: bytes) -> str:
        """See `FaultProducer.send`."""
        try:
            self._producer.send(topic, value).get(SEND_SECONDS_MAX)
        except Exception as error:
            return type(error).__name__
        return OK

    def close(self) -> None:
        """See `FaultProducer.close`."""
        self._producer.close(timeout=0)


class ConfluentProducer:
    """confluent-kafka's (librdkafka); without retries unless it is idempotent."""

    def __init__(
        self, broker: Broker, give_up_ms: int = GIVE_UP_MS, *, idempotent: bool = False
    ) -> None:
        settings: dict[str, Any] = {
            **broker.client_settings(CONFLUENT),
            "linger.ms": 0,
            "request.timeout.ms": give_up_ms,
            "socket.timeout.ms": give_up_ms,
            "message.timeout.ms": 6 * give_up_ms,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "log_level": 0,
        }
        settings |= {"enable.idempotence": True} if idempotent else {"acks": "1", "retries": 0}
        self._producer = confluent_kafka.Producer(settings)

    def send(self, topic: str, value: bytes) -> str:
        """See `FaultProducer.send`."""
        seen: list[str] = []
        self._producer.produce(
            topic,
            value,
            on_delivery=lambda error, _: seen.append(OK if error is None else error.name()),
        )
        deadline = time.monotonic() + SEND_SECONDS_MAX
        while not seen and time.monotonic() < deadline:
            self._producer.poll(0.1)
        return seen[0] if seen else "silence"

    def close(self) -> None:
        """See `FaultProducer.close`."""
        self._producer.flush(0)


class AiokafkaProducer:
    """aiokafka's; it retries, and is not idempotent."""

    def __init__(self, broker: Broker, give_up_ms: int = GIVE_UP_MS) -> None:
        self._loop = asyncio.new_event_loop()
        self._producer: Any = self._loop.run_until_complete(self._start(broker, give_up_ms))

    async def _start(self, broker: Broker, give_up_ms: int) -> Any:
        producer = aiokafka.AIOKafkaProducer(
            **broker.client_settings(AIOKAFKA),
            acks=1,
            request_timeout_ms=give_up_ms,
            retry_backoff_ms=10,
        )
        await producer.start()
        return producer

    def send(self, topic: str, value: bytes) -> str:
        """See `FaultProducer.send`."""
        sending = asyncio.wait_for(self._producer.send_and_wait(topic, value), SEND_SECONDS_MAX)
        try:
            self._loop.run_until_complete(sending)
        except Exception as error:
            return type(error).__name__
        return OK

    def close(self) -> None:
        """See `FaultProducer.close`."""
        self._loop.run_until_complete(self._producer.stop())
        self._loop.close()


PRODUCERS: dict[str, Callable[..., FaultProducer]] = {
    KAFKA_PYTHON: KafkaPythonProducer,
    CONFLUENT: ConfluentProducer,
    AIOKAFKA: AiokafkaProducer,
    IDEMPOTENT[0]: partial(KafkaPythonProducer, idempotent=True),
    IDEMPOTENT[1]: partial(ConfluentProducer, idempotent=True),
}
"""Each takes a broker, and may be told how long it waits for an answer, in milliseconds."""

"""Producers of real clients that tell a history what they send and what becomes of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from confluent_kafka import KafkaException, Message, Producer
from kafka import KafkaProducer

from odradek.testing.waiting import wait_until

from .load_history import History, token_of, value_of
from .replication_checker import Token

DELIVERY_SECONDS_MAX = 120
REQUEST_SECONDS_MAX = 3
SEND_ONCE_SECONDS_MAX = 1.5
"""Of records that a leader keeps whether or not it answers in time."""
UNANSWERED_MAX = 200
"""A client sends no more while so many records of its own are under way: on a busy machine, one
record a batch, it would have them expire in its queue."""
METADATA_MS_MAX = 500
"""How long a client may know only those brokers that were there when it last asked."""
LIBRDKAFKA_LOG_LEVEL = 2
"""Critical: that connections end while brokers are gone is no news here."""


class SenderEnded(Exception):
    """A client has met an error that it does not go on after; the history knows."""


class Sender(Protocol):
    """A client that sends, whichever it is."""

    name: str

    def send(self, topic: str, partition: int, token: Token, value: bytes) -> None:
        """Send one record; the history is told what became of it.

        Raises:
            SenderEnded: the client sends no more.
        """

    def flush(self) -> None:
        """Wait until all of them are acknowledged or given up."""


class ConfluentSender:
    """confluent-kafka's producer."""

    name = "confluent"

    def __init__(self, bootstrap: Sequence[str], history: History, batched: bool) -> None:
        self._history = history
        self._producer = Producer(
            {
                "batch.num.messages": 10_000 if batched else 1,
                "queue.buffering.max.messages": UNANSWERED_MAX,
                "bootstrap.servers": ",".join(bootstrap),
                "log_level": LIBRDKAFKA_LOG_LEVEL,
                "enable.idempotence": True,
                "linger.ms": 5,
                "compression.type": "lz4",
                "request.timeout.ms": REQUEST_SECONDS_MAX * 1000,
                "socket.timeout.ms": REQUEST_SECONDS_MAX * 1000,
                "delivery.timeout.ms": DELIVERY_SECONDS_MAX * 1000,
                "reconnect.backoff.max.ms": 500,
            }
        )

    def send(self, topic: str, partition: int, token: Token, value: bytes) -> None:
        def on_delivery(error: object, message: Message) -> None:
            if error is None:
                self._history.acknowledge(token, partition, message.offset())
            else:
                self._history.refuse(token, partition, error)

        while True:
            try:
                self._producer.produce(topic, value, partition=partition, on_delivery=on_delivery)
                break
            except BufferError:  # wait until some are acknowledged
                self._producer.poll(0.5)
            except KafkaException as error:
                self._history.refuse(token, partition, error)
                raise SenderEnded from error
        self._producer.poll(0)

    def flush(self) -> None:
        left = self._producer.flush(DELIVERY_SECONDS_MAX)
        assert left == 0, f"{left} records of confluent-kafka's were not acknowledged"


class KafkaPythonSender:
    """kafka-python's producer."""

    name = "kafka-python"

    def __init__(self, bootstrap: Sequence[str], history: History, batched: bool) -> None:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # as librdkafka's
        self._history = history
        self._room = threading.Semaphore(UNANSWERED_MAX)
        self._producer = self._with_producer_id(list(bootstrap), batched)

    def _with_producer_id(self, bootstrap: list[str], batched: bool) -> KafkaProducer:
        """Made anew where that id does not come in time, since kafka-python 3.0 then gives up."""
        while True:
            producer = KafkaProducer(
                batch_size=16_384 if batched else 0,
                bootstrap_servers=bootstrap,
                enable_idempotence=True,
                linger_ms=5,
                request_timeout_ms=REQUEST_SECONDS_MAX * 1000,
                delivery_timeout_ms=DELIVERY_SECONDS_MAX * 1000,
                max_block_ms=DELIVERY_SECONDS_MAX * 1000,
                reconnect_backoff_max_ms=500,
                metadata_max_age_ms=METADATA_MS_MAX,
            )
            state = producer._transaction_manager
            wait_until(
                partial(self._is_decided, state),
                DELIVERY_SECONDS_MAX,
                "nobody gives kafka-python a producer id",
            )
            if state.has_producer_id():
                return producer
            producer.close(timeout=0)

    @staticmethod
    def _is_decided(state: Any) -> bool:
        return bool(state.has_producer_id() or state.has_fatal_error())

    def send(self, topic: str, partition: int, token: Token, value: bytes) -> None:
        history = self._history
        self._room.acquire()
        future = self._producer.send(topic, value, partition=partition)
        future.add_callback(lambda done: history.acknowledge(token, partition, done.offset))
        future.add_errback(lambda error: history.refuse(token, partition, repr(error)))
        future.add_both(lambda _: self._room.release())

    def flush(self) -> None:
        self._producer.flush(timeout=DELIVERY_SECONDS_MAX)
        self._producer.close()


def send_once(
    port: int,
    topic: str,
    acks: str,
    count: int,
    history: History,
    seconds_max: float = SEND_ONCE_SECONDS_MAX,
) -> int:
    """Send records to partition 0, each once, and wait for what comes of it.

    With acks=1 nothing is promised once the leader is gone; with acks=all the history is told
    which were acknowledged, and that the others were not is no fault.

    Returns:
        The end of the last that was answered, -1 if none was.
    """
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "log_level": LIBRDKAFKA_LOG_LEVEL,
            "acks": acks,
            "retries": 0,
            "batch.num.messages": 1,
            "message.timeout.ms": int(seconds_max * 1000),
        }
    )
    ends = [-1]

    def on_delivery(error: object, message: Message) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            ends.append(offset + 1)
            if acks == "all":
                history.acknowledge(token_of(message.value()), 0, offset)

    sender = history.new_sender(f"acks={acks}")
    for _ in range(count):
        token = history.send(sender, 0)
        producer.produce(topic, value_of(token), partition=0, on_delivery=on_delivery)
    assert producer.flush(seconds_max + DELIVERY_SECONDS_MAX) == 0
    return max(ends)

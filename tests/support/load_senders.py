"""Producers of real clients that tell a history what they send and what becomes of it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import subprocess
import threading
from collections.abc import Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from aiokafka import AIOKafkaProducer
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
JAVA_PRODUCER = "odradek.interop.SteadyProducer"
LIBRDKAFKA_LOG_LEVEL = 2
"""Critical: that connections end while brokers are gone is no news here."""


ResultT = TypeVar("ResultT")


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


class AiokafkaSender:
    """aiokafka's producer, with an event loop in a thread of its own."""

    name = "aiokafka"

    def __init__(self, bootstrap: Sequence[str], history: History, batched: bool) -> None:
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # as librdkafka's
        self._history = history
        self._room = threading.Semaphore(UNANSWERED_MAX)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._producer = self._run(self._started(list(bootstrap), batched))

    async def _started(self, bootstrap: list[str], batched: bool) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            acks="all",
            linger_ms=5,
            max_batch_size=16_384 if batched else 1,
            request_timeout_ms=DELIVERY_SECONDS_MAX * 1000,
            metadata_max_age_ms=METADATA_MS_MAX,
        )
        await producer.start()
        return producer

    def _run(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(DELIVERY_SECONDS_MAX)

    def send(self, topic: str, partition: int, token: Token, value: bytes) -> None:
        self._room.acquire()
        self._run(self._enqueue(topic, partition, token, value))

    async def _enqueue(self, topic: str, partition: int, token: Token, value: bytes) -> None:
        future = await self._producer.send(topic, value, partition=partition)
        future.add_done_callback(lambda done: self._settled(done, token, partition))

    def _settled(self, done: asyncio.Future[Any], token: Token, partition: int) -> None:
        self._room.release()
        error = done.exception()
        if error is None:
            offset = done.result().offset
            self._history.acknowledge(token, partition, offset if offset >= 0 else None)
        else:
            self._history.refuse(token, partition, repr(error))

    def flush(self) -> None:
        self._run(self._producer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DELIVERY_SECONDS_MAX)


class JavaSender:
    """Java's producer, in a process of its own that is told what to send."""

    name = "java"

    def __init__(
        self,
        bootstrap: Sequence[str],
        history: History,
        batched: bool,
        *,
        java_command: Sequence[str],
        topic: str,
        errors: Path,
    ) -> None:
        self._history = history
        self._room = threading.Semaphore(UNANSWERED_MAX)
        self._numbers = itertools.count()
        self._under_way: dict[int, tuple[Token, int]] = {}
        settings = {
            "linger.ms": "5",
            "batch.size": "16384" if batched else "0",
            "request.timeout.ms": str(REQUEST_SECONDS_MAX * 1000),
            "delivery.timeout.ms": str(DELIVERY_SECONDS_MAX * 1000),
            "max.block.ms": str(DELIVERY_SECONDS_MAX * 1000),
            "reconnect.backoff.max.ms": "500",
            "metadata.max.age.ms": str(METADATA_MS_MAX),
        }
        pairs = [f"{key}={value}" for key, value in settings.items()]
        with errors.open("wb") as log:
            self._process = subprocess.Popen(
                [*java_command, JAVA_PRODUCER, ",".join(bootstrap), topic, *pairs],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", errors.read_text()
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def send(self, topic: str, partition: int, token: Token, value: bytes) -> None:
        self._room.acquire()
        number = next(self._numbers)
        self._under_way[number] = token, partition
        assert self._process.stdin is not None
        self._process.stdin.write(f"{number} {partition} {value.decode()}\n")
        self._process.stdin.flush()

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, number, said = line.rstrip("\n").split(" ", 2)
            token, partition = self._under_way.pop(int(number))
            if what == "acknowledged":
                offset = int(said)
                self._history.acknowledge(token, partition, offset if offset >= 0 else None)
            else:
                self._history.refuse(token, partition, said)
            self._room.release()

    def flush(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            assert self._process.wait(DELIVERY_SECONDS_MAX) == 0, "the Java producer failed"
            self._reader.join(DELIVERY_SECONDS_MAX)
            assert not self._under_way, f"{len(self._under_way)} records were not settled"
        finally:
            self._process.kill()


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

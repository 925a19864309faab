"""A steady load on a replicated topic, from two clients, with everything told to a checker.

Idempotent producers of confluent-kafka and kafka-python send a few hundred records a second
with acks=all, each in a thread of its own; a consumer reads all partitions from their start
to their end, and again from their start; and a poller asks for starts and ends.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from kafka import KafkaProducer

from odradek.protocol import messages
from odradek.protocol.errors import ErrorCode

from .broker_cluster import ask
from .replication_checker import ReplicationChecker, Token

RECORDS_PER_SECOND = 200
DELIVERY_SECONDS_MAX = 120
REQUEST_SECONDS_MAX = 3
METADATA_MS_MAX = 500
"""How long a client may know only those brokers that were there when it last asked."""
SILENT_SECONDS_MAX = 30.0
SEND_ONCE_MS_MAX = 1_500
VALUE_BYTES_MAX = 600
POLL_SECONDS = 0.1
READ_ON_SECONDS = 4.0
"""A reader begins anew only so often, or it would be most of the load."""
METADATA_VERSION = 9
LIST_OFFSETS_VERSION = 6
LATEST, EARLIEST = -1, -2
LIBRDKAFKA_LOG_LEVEL = 2
"""Critical: that connections end while brokers are gone is no news here."""

logging.getLogger("kafka").setLevel(logging.CRITICAL)


def value_of(token: Token, padding: int = 0) -> bytes:
    """The record of a token."""
    return b"%s:%d:" % (token.sender.encode(), token.number) + b"." * padding


def token_of(value: bytes | None) -> Token:
    """The token of a record."""
    assert value is not None
    sender, number, _ = value.split(b":", 2)
    return Token(sender.decode(), int(number))


class History:
    """The checker, for many threads, and for waiting until something is acknowledged.

    Attributes:
        checker: to be used alone only when all threads have ended.
        trouble: what ended a thread that should not have.
    """

    def __init__(self) -> None:
        self.checker = ReplicationChecker()
        self.trouble: list[BaseException] = []
        self._changed = threading.Condition()
        self._senders = 0
        self._next: dict[tuple[str, int], int] = {}
        self._acknowledged: dict[tuple[str, int], int] = {}

    def new_sender(self, client: str) -> str:
        """A name that no other sender has."""
        with self._changed:
            self._senders += 1
            return f"{client} {self._senders}"

    def send(self, sender: str, partition: int) -> Token:
        """A sender is about to send."""
        with self._changed:
            token = self.checker.sent(sender, partition)
            self._next[sender, partition] = token.number + 1
            return token

    def acknowledge(self, token: Token, partition: int, offset: int | None) -> None:
        """A record is acknowledged; None: nobody says where it is."""
        with self._changed:
            self.checker.acknowledged(token, partition, offset)
            key = token.sender, partition
            self._acknowledged[key] = max(token.number, self._acknowledged.get(key, -1))
            self._changed.notify_all()

    def refuse(self, token: Token, partition: int, reason: object) -> None:
        with self._changed:
            self.checker.refused(token, partition, str(reason))

    def tell(self, event: Callable[[ReplicationChecker], None]) -> None:
        with self._changed:
            event(self.checker)

    def has_violations(self) -> bool:
        """Whether anything was found yet."""
        with self._changed:
            return bool(self.checker.violations)

    def mark(self) -> dict[tuple[str, int], int]:
        """By sender and partition, the number of the record that will be sent next."""
        with self._changed:
            return dict(self._next)

    def wait_acknowledged(
        self,
        mark: Mapping[tuple[str, int], int],
        partitions: Collection[int],
        seconds: float = SILENT_SECONDS_MAX,
    ) -> list[tuple[str, int]]:
        """Wait until each sender got an acknowledgement from each partition after a mark.

        Returns:
            Senders and partitions of which that did not come true in time.
        """

        def missing() -> list[tuple[str, int]]:
            if self.trouble:
                raise self.trouble[0]
            return [
                key
                for key, number in mark.items()
                if key[1] in partitions and self._acknowledged.get(key, -1) < number
            ]

        with self._changed:
            self._changed.wait_for(lambda: not missing(), seconds)
            return missing()

    def trouble_within(self, seconds: float) -> None:
        """Let so much time pass, unless a thread ends in trouble, which is raised."""
        with self._changed:
            if self._changed.wait_for(lambda: bool(self.trouble), seconds):
                raise self.trouble[0]

    def fail(self, trouble: BaseException) -> None:
        with self._changed:
            self.trouble.append(trouble)
            self._changed.notify_all()


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
            except BufferError:  # brokers are away for long: wait until some are sent
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
        self._history = history
        self._producer = KafkaProducer(
            batch_size=16_384 if batched else 0,
            bootstrap_servers=list(bootstrap),
            enable_idempotence=True,
            linger_ms=5,
            request_timeout_ms=REQUEST_SECONDS_MAX * 1000,
            delivery_timeout_ms=DELIVERY_SECONDS_MAX * 1000,
            max_block_ms=DELIVERY_SECONDS_MAX * 1000,
            reconnect_backoff_max_ms=500,
            metadata_max_age_ms=METADATA_MS_MAX,
        )

    def send(self, topic: str, partition: int, token: Token, value: bytes) -> None:
        history = self._history
        future = self._producer.send(topic, value, partition=partition)
        future.add_callback(lambda done: history.acknowledge(token, partition, done.offset))
        future.add_errback(lambda error: history.refuse(token, partition, repr(error)))

    def flush(self) -> None:
        self._producer.flush(timeout=DELIVERY_SECONDS_MAX)
        self._producer.close()


def send_once(port: int, topic: str, acks: str, count: int, history: History) -> int:
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
            "message.timeout.ms": SEND_ONCE_MS_MAX,
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
    assert producer.flush(2 * SEND_ONCE_MS_MAX / 1000) == 0
    return max(ends)


class SteadyLoad:
    """The threads; a context manager that ends them.

    Args:
        ports: of the brokers, by id.
        topic: it exists, with so many partitions.
        partitions: how many.
        history: of another load before this one; its senders have ended.
        seed: of the choice of partitions and sizes.
        batched: whether records may share a batch.
    """

    def __init__(
        self,
        ports: Mapping[int, int],
        topic: str,
        partitions: int,
        *,
        history: History | None = None,
        seed: int = 0,
        batched: bool = True,
    ) -> None:
        self.history = history or History()
        self.partitions = range(partitions)
        self._ports = ports
        self._topic = topic
        self._bootstrap = [f"127.0.0.1:{port}" for port in ports.values()]
        self._stop_sending = threading.Event()
        self._stop = threading.Event()
        self._batched = batched
        chance = random.Random(seed)
        senders: list[Callable[..., Sender]] = [ConfluentSender, KafkaPythonSender]
        self._senders = [
            self._thread(self._send, sender, random.Random(chance.random())) for sender in senders
        ]
        self._watchers = [self._thread(self._read), self._thread(self._poll_offsets)]

    def __enter__(self) -> SteadyLoad:
        for thread in (*self._senders, *self._watchers):
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop_sending.set()
        self._stop.set()

    def stop_sending(self) -> None:
        """Send no more, and wait until all that was sent is settled."""
        self._stop_sending.set()
        for thread in self._senders:
            thread.join(DELIVERY_SECONDS_MAX + 10)
            assert not thread.is_alive(), "a producer did not end"
        self._require_no_trouble()

    def stop(self) -> None:
        """End all threads; what they do not want to end with is raised."""
        self.stop_sending()
        self._stop.set()
        for thread in self._watchers:
            thread.join(30)
            assert not thread.is_alive(), "a reader did not end"
        self._require_no_trouble()

    def wait_end(self, partition: int, offset: int) -> None:
        """Wait until a partition's high watermark is this far."""
        poller = OffsetPoller(self._ports, self._topic, self.partitions, self.history)
        deadline = time.monotonic() + SILENT_SECONDS_MAX
        while poller.poll("another poller").get(partition, -1) < offset:
            assert time.monotonic() < deadline, f"{partition} did not come to {offset}"
            time.sleep(POLL_SECONDS)

    def end_offsets(self) -> dict[int, int]:
        """The high watermark of each partition, asked until all are told."""
        poller = OffsetPoller(self._ports, self._topic, self.partitions, self.history)
        deadline = time.monotonic() + SILENT_SECONDS_MAX
        while True:
            ends = poller.poll("the last poller")
            if len(ends) == len(self.partitions):
                return ends
            assert time.monotonic() < deadline, "the ends of partitions were not told"
            time.sleep(POLL_SECONDS)

    def _require_no_trouble(self) -> None:
        if self.history.trouble:
            raise self.history.trouble[0]

    def _thread(self, work: Callable[..., None], *arguments: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*arguments)
            except BaseException as trouble:
                self.history.fail(trouble)

        return threading.Thread(target=run, daemon=True)

    # -- the threads --------------------------------------------------------------------

    def _send(self, make: Callable[..., Sender], chance: random.Random) -> None:
        sender = make(self._bootstrap, self.history, self._batched)
        name = self.history.new_sender(sender.name)
        due = time.monotonic()
        while not self._stop_sending.is_set():
            partition = chance.choice(self.partitions)
            token = self.history.send(name, partition)
            padding = chance.randrange(VALUE_BYTES_MAX)
            try:
                sender.send(self._topic, partition, token, value_of(token, padding))
            except SenderEnded:
                break
            due = max(due + 1 / RECORDS_PER_SECOND, time.monotonic() - 0.1)
            self._stop_sending.wait(due - time.monotonic())
        sender.flush()

    def _read(self) -> None:
        number = 0
        while not self._stop.is_set():
            self.read_all(f"reader {number}", self._stop)
            number += 1

    def read_all(
        self, reader: str, stop: threading.Event, ends: Mapping[int, int] | None = None
    ) -> None:
        """Read from the start to where the ends are now, or to those given.

        Args:
            reader: what the checker knows it as.
            stop: give up as soon as it is set.
            ends: by partition; None: where they are as the partition is reached.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": ",".join(self._bootstrap),
                "group.id": "unused",
                "log_level": LIBRDKAFKA_LOG_LEVEL,
                "enable.auto.commit": False,
                "enable.partition.eof": ends is None,
                "auto.offset.reset": "error",
                "reconnect.backoff.max.ms": 500,
                "fetch.wait.max.ms": 100,
            }
        )
        left = {each for each in self.partitions if ends is None or ends[each] > 0}
        until = time.monotonic() + (READ_ON_SECONDS if ends is None else 0)
        try:
            consumer.assign(
                [ConfluentTopicPartition(self._topic, each, OFFSET_BEGINNING) for each in left]
            )
            for each in left:
                self.history.tell(lambda checker, at=each: checker.began_to_read(reader, at, 0))
            while (left or time.monotonic() < until) and not stop.is_set():
                for message in consumer.consume(500, timeout=POLL_SECONDS):
                    self._take(reader, message, ends, left)
        finally:
            consumer.close()

    def _take(
        self, reader: str, message: Message, ends: Mapping[int, int] | None, left: set[int]
    ) -> None:
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None:
            if error.name() == "_PARTITION_EOF":
                left.discard(partition)
            elif error.name() in ("_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE") or error.fatal():
                raise KafkaException(error)
            return
        assert partition is not None
        assert offset is not None
        token = token_of(message.value())
        self.history.tell(lambda checker: checker.read(reader, partition, offset, token))
        if ends is not None and offset + 1 >= ends[partition]:
            left.discard(partition)

    def _poll_offsets(self) -> None:
        poller = OffsetPoller(self._ports, self._topic, self.partitions, self.history)
        while not self._stop.wait(POLL_SECONDS):
            poller.poll("the poller")


class OffsetPoller:
    """Asks leaders where their partitions begin and end, naming the epochs it knows (KIP-320).

    Without them a leader that does not know yet that it is none any more would tell an end
    that others have gone past.
    """

    def __init__(
        self,
        ports: Mapping[int, int],
        topic: str,
        partitions: Sequence[int],
        history: History,
        seconds: float = 1.0,
    ) -> None:
        self._ports = ports
        self._topic = topic
        self._partitions = partitions
        self._history = history
        self._seconds = seconds
        self._leaders: dict[int, tuple[int, int]] = {}

    def poll(self, reader: str) -> dict[int, int]:
        """Ask once; returns the ends that were told."""
        self._learn_leaders()
        ends: dict[int, int] = {}
        for partition, (epoch, leader) in self._leaders.items():
            for which, timestamp in (("start", EARLIEST), ("end", LATEST)):
                offset = self._ask(partition, leader, epoch, timestamp)
                if offset is None:
                    continue
                self._history.tell(
                    lambda checker, at=partition, what=which, found=offset: checker.listed(
                        reader, at, what, found
                    )
                )
                if timestamp == LATEST:
                    ends[partition] = offset
        return ends

    def _learn_leaders(self) -> None:
        topic = messages.MetadataRequest.MetadataRequestTopic(name=self._topic)
        request = messages.MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        for port in self._ports.values():
            try:
                answer = ask(port, request, METADATA_VERSION, self._seconds)
            except OSError:
                continue
            for partition in answer.topics[0].partitions:
                if partition.leader_id < 0:
                    continue
                found = partition.leader_epoch, partition.leader_id
                known = self._leaders.get(partition.partition_index, (-1, -1))
                self._leaders[partition.partition_index] = max(found, known)

    def _ask(self, partition: int, leader: int, epoch: int, timestamp: int) -> int | None:
        make = messages.ListOffsetsRequest
        wanted = make.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        request = make(
            replica_id=-1, topics=[make.ListOffsetsTopic(name=self._topic, partitions=[wanted])]
        )
        try:
            answer = ask(self._ports[leader], request, LIST_OFFSETS_VERSION, self._seconds)
        except OSError:
            return None
        (found,) = answer.topics[0].partitions
        return found.offset if found.error_code == ErrorCode.NONE else None

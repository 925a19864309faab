"""A steady load on a replicated topic, from two clients, with everything told to a checker.

Idempotent producers of confluent-kafka and kafka-python send a few hundred records a second
with acks=all, each in a thread of its own; a consumer reads all partitions from their start
to their end, and again from their start; and a poller asks for starts and ends.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as ConfluentTopicPartition

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

from .broker_cluster import ask
from .load_history import SILENT_SECONDS_MAX, History, token_of, value_of
from .load_senders import (
    DELIVERY_SECONDS_MAX,
    LIBRDKAFKA_LOG_LEVEL,
    ConfluentSender,
    KafkaPythonSender,
    Sender,
    SenderEnded,
)

RECORDS_PER_SECOND = 200
"""Of each sender."""

VALUE_BYTES_MAX = 600
POLL_SECONDS = 0.1
GROW_SECONDS_MAX = 180.0
"""A busy machine sends far fewer records a second."""

READ_ON_SECONDS = 4.0
"""A reader begins anew only so often, or it would be most of the load."""

MakeSender = Callable[[Sequence[str], History, bool], Sender]
"""Given bootstrap servers, whom to tell, and whether records may share a batch."""

METADATA_VERSION = 9
LIST_OFFSETS_VERSION = 6
LATEST, EARLIEST = -1, -2


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
                with self._history.telling() as checker:
                    checker.listed(reader, partition, which, offset)
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
        requested = make.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        request = make(
            replica_id=-1, topics=[make.ListOffsetsTopic(name=self._topic, partitions=[requested])]
        )
        try:
            answer = ask(self._ports[leader], request, LIST_OFFSETS_VERSION, self._seconds)
        except OSError:
            return None
        (found,) = answer.topics[0].partitions
        return found.offset if found.error_code == ErrorCode.NONE else None


class SteadyLoad:
    """The threads; a context manager that ends them.

    Args:
        ports: of the brokers, by id.
        topic: it exists, with so many partitions.
        partitions: how many.
        history: of another load before this one; its senders have ended.
        seed: of the choice of partitions and sizes.
        batched: whether records may share a batch.
        senders: make the clients that send.
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
        senders: Sequence[MakeSender] = (ConfluentSender, KafkaPythonSender),
    ) -> None:
        self.history = history or History()
        self.partitions = range(partitions)
        self._ports = ports
        self._topic = topic
        self._bootstrap = [f"127.0.0.1:{port}" for port in ports.values()]
        self._stop_sending = threading.Event()
        self._stop = threading.Event()
        self._batched = batched
        rng = random.Random(seed)
        self._senders = [
            self._thread(self._send, sender, random.Random(rng.random())) for sender in senders
        ]
        self._watchers = [self._thread(self._read), self._thread(self._poll_offsets)]

    def __enter__(self) -> SteadyLoad:
        for thread in (*self._senders, *self._watchers):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_sending.set()
        self._stop.set()

    def is_sending(self) -> bool:
        """Whether every client has begun to send: until then it knows no broker but the first."""
        self._require_no_trouble()
        return len({sender for sender, _ in self.history.mark()}) == len(self._senders)

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
            thread.join(120)
            assert not thread.is_alive(), "a reader did not end"
        self._require_no_trouble()

    def wait_end(self, partition: int, offset: int) -> None:
        """Wait until a partition's high watermark is this far."""
        poller = OffsetPoller(self._ports, self._topic, self.partitions, self.history)
        deadline = time.monotonic() + GROW_SECONDS_MAX
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

    def _send(self, make: MakeSender, rng: random.Random) -> None:
        sender = make(self._bootstrap, self.history, self._batched)
        name = self.history.new_sender(sender.name)
        due = time.monotonic()
        while not self._stop_sending.is_set():
            partition = rng.choice(self.partitions)
            token = self.history.send(name, partition)
            padding = rng.randrange(VALUE_BYTES_MAX)
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
                with self.history.telling() as checker:
                    checker.began_to_read(reader, each, 0)
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
        with self.history.telling() as checker:
            checker.read(reader, partition, offset, token)
        if ends is not None and offset + 1 >= ends[partition]:
            left.discard(partition)

    def _poll_offsets(self) -> None:
        poller = OffsetPoller(self._ports, self._topic, self.partitions, self.history)
        while not self._stop.wait(POLL_SECONDS):
            poller.poll("the poller")

"""A consume-transform-produce worker, a process: `python -m support.exactly_once_worker JSON`.

It reads records of the input topic as a member of a group, writes one record for each to the same
partition of the output topic, and commits both in one transaction. Every few transactions it
gives one up after its records are written, and does them again. It prints one line at each step
(see `Step`), so that whoever watches it knows where it stands when it is killed.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple, NoReturn

from .transactional_clients import CLIENTS, Refused, TransactionalClient, call_confluent

POLL_SECONDS = 0.2
COMMITTED_SECONDS_MAX = 10.0
START_SECONDS = 8.0
HANG_SECONDS = 2.5
FENCED_EXIT = 3
"""The exit code of a worker that may not go on; another one may."""


class Step(StrEnum):
    """What a worker prints."""

    READY = "ready"
    WROTE = "wrote"
    SENT_OFFSETS = "sent-offsets"
    COMMITTED = "committed"
    DOOMED = "doomed"
    """A transaction was given up as planned."""
    HUNG = "hung"
    """A client did not come back; the worker ends."""
    ABORTED = "aborted"
    """A transaction was given up because a call failed; the reason follows."""


class Settings(NamedTuple):
    """What a worker is told, as JSON, by name.

    Attributes:
        client: "confluent-kafka" or "kafka-python".
        bootstrap: host:port of the brokers.
        source: the topic to read.
        target: the topic to write, with as many partitions.
        group: id of the group.
        member: its static member id; "": none.
        transactional_id: of its producer.
        session_ms: how long the group waits for it.
        transaction_ms: how long a transaction may take.
        records_max: how many records a transaction may have.
        doom_every: each so-manieth transaction is given up; 0: none.
        patience: how many times as long as usual it waits for a client that may hang.
    """

    client: str
    bootstrap: list[str]
    source: str
    target: str
    group: str
    member: str = ""
    transactional_id: str = "worker"
    session_ms: int = 2_000
    transaction_ms: int = 20_000
    records_max: int = 500
    doom_every: int = 5
    patience: int = 1


class Record(NamedTuple):
    """One record of the input."""

    partition: int
    offset: int
    value: bytes


class Reader(ABC):
    """A member of the group, by one library's consumer."""

    metadata: Any
    """Of the group in the generation in which records were read last: offsets of another one must
    not count."""

    @abstractmethod
    def read(self) -> list[Record]: ...

    @abstractmethod
    def rewind(self) -> None:
        """Go back to what is committed."""


def value_of(record: Record, attempt: int, *, doomed: bool) -> bytes:
    """What is written for a record."""
    fate = b"doomed" if doomed else b"kept"
    return b"%d:%d:%d:%s:%s" % (record.partition, record.offset, attempt, fate, record.value)


def tell(step: Step, text: object = "") -> None:
    """Print where the worker stands."""
    print(step.value, str(text).replace("\n", " "), flush=True)


def work(producer: TransactionalClient, reader: Reader, settings: Settings) -> NoReturn:
    """Do transactions for ever. Raises `Refused` when the producer may do nothing more."""
    watchdog = threading.Timer(START_SECONDS * settings.patience, hang)
    watchdog.start()
    producer.init()
    watchdog.cancel()
    tell(Step.READY)
    numbers = itertools.count(1)
    while True:
        records = reader.read()
        if not records:
            continue
        number = next(numbers)
        doomed = settings.doom_every > 0 and number % settings.doom_every == 0
        watchdog = threading.Timer(HANG_SECONDS * settings.patience, hang)
        watchdog.start()
        try:
            producer.begin()
            for record in records:
                value = value_of(record, number, doomed=doomed)
                producer.produce(settings.target, record.partition, value)
            producer.flush()
            tell(Step.WROTE, len(records))
            producer.send_offsets(settings.source, reached(records), reader.metadata)
            tell(Step.SENT_OFFSETS)
            if not doomed:
                producer.commit()
                tell(Step.COMMITTED, json.dumps(reached(records)))
                continue
            producer.abort()
            tell(Step.DOOMED, len(records))
            reader.rewind()
        except Refused as refused:
            if refused.is_fatal:
                raise
            producer.abort()
            tell(Step.ABORTED, refused)
            reader.rewind()
        finally:
            watchdog.cancel()


def hang() -> NoReturn:
    """End a worker that does not come to the end of its transaction; another takes its place.

    librdkafka 2.16 waits for ever for a group's coordinator whose broker has left the cluster
    (its issue 5511), whatever timeout it was given (5456); kafka-python 3.0 loses the request
    that it wanted to send to a coordinator which is gone.
    """
    tell(Step.HUNG)
    os._exit(FENCED_EXIT)


def reached(records: list[Record]) -> dict[int, int]:
    """By partition, the offset after the last of some records."""
    return {record.partition: record.offset + 1 for record in records}


class ConfluentReader(Reader):
    """confluent-kafka's consumer, that is librdkafka's."""

    def __init__(self, settings: Settings) -> None:
        from confluent_kafka import Consumer

        self._records_max = settings.records_max
        self._consumer = Consumer(
            {
                "bootstrap.servers": ",".join(settings.bootstrap),
                "log_level": 2,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 1_000,
                "group.id": settings.group,
                **({"group.instance.id": settings.member} if settings.member else {}),
                "session.timeout.ms": settings.session_ms,
                "heartbeat.interval.ms": settings.session_ms // 4,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.subscribe([settings.source])

    def read(self) -> list[Record]:
        found = []
        for message in self._consumer.consume(self._records_max, POLL_SECONDS):
            if message.error() is None:
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                assert isinstance(value, bytes)
                found.append(Record(partition, offset, value))
        self.metadata = self._consumer.consumer_group_metadata()
        return found

    def rewind(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        def seek_committed() -> None:
            assigned = self._consumer.assignment()
            for each in self._consumer.committed(assigned, COMMITTED_SECONDS_MAX):
                offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
                self._consumer.seek(TopicPartition(each.topic, each.partition, offset))

        call_confluent(seek_committed)


class KafkaPythonReader(Reader):
    """kafka-python's consumer."""

    def __init__(self, settings: Settings) -> None:
        from kafka import KafkaConsumer

        self._consumer = KafkaConsumer(
            settings.source,
            bootstrap_servers=settings.bootstrap,
            reconnect_backoff_max_ms=500,
            metadata_max_age_ms=1_000,
            group_id=settings.group,
            group_instance_id=settings.member or None,
            session_timeout_ms=settings.session_ms,
            heartbeat_interval_ms=settings.session_ms // 4,
            isolation_level="read_committed",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            max_poll_records=settings.records_max,
        )

    def read(self) -> list[Record]:
        batches = self._consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
        self.metadata = self._consumer.group_metadata()
        return [
            Record(each.partition, each.offset, each.value)
            for batch in batches.values()
            for each in batch
        ]

    def rewind(self) -> None:
        for each in self._consumer.assignment():
            offset = self._consumer.committed(each)
            if offset is None:
                self._consumer.seek_to_beginning(each)
            else:
                self._consumer.seek(each, offset)


READERS: dict[str, Callable[[Settings], Reader]] = {
    "confluent-kafka": ConfluentReader,
    "kafka-python": KafkaPythonReader,
}


def _errors_of(client: str) -> tuple[type[Exception], ...]:
    """What the client's consumer may raise."""
    if client == "confluent-kafka":
        from confluent_kafka import KafkaException

        return (KafkaException,)
    from kafka.errors import KafkaError

    return (KafkaError,)


def main() -> int:
    """Work as the first argument says; ends only when it may not go on."""
    settings = Settings(**json.loads(sys.argv[1]))
    errors: tuple[type[Exception], ...] = (Refused, *_errors_of(settings.client))
    where = (",".join(settings.bootstrap), settings.transactional_id, settings.transaction_ms)
    try:
        work(CLIENTS[settings.client](*where), READERS[settings.client](settings), settings)
    except errors as error:
        print(f"may not go on: {error!r}", file=sys.stderr)
        return FENCED_EXIT


if __name__ == "__main__":
    sys.exit(main())

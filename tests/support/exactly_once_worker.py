"""A consume-transform-produce worker, a process of its own: `exactly_once_worker.py JSON`.

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
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, NoReturn, Protocol

POLL_SECONDS = 0.2
CALL_SECONDS_MAX = 10.0
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


class Failed(Exception):
    """A call did not succeed: the transaction must be given up."""


class Fenced(Exception):
    """This worker's producer may do nothing more."""


class Client(Protocol):
    """What a worker needs of a client."""

    def init_transactions(self) -> None: ...
    def read(self) -> list[Record]: ...
    def begin(self) -> None: ...
    def write(self, partition: int, value: bytes) -> None: ...
    def flush(self) -> None: ...
    def send_offsets(self, records: list[Record]) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def rewind(self) -> None: ...


def value_of(record: Record, attempt: int, *, doomed: bool) -> bytes:
    """What is written for a record."""
    fate = b"doomed" if doomed else b"kept"
    return b"%d:%d:%d:%s:%s" % (record.partition, record.offset, attempt, fate, record.value)


def tell(step: Step, text: object = "") -> None:
    """Print where the worker stands."""
    print(step.value, str(text).replace("\n", " "), flush=True)


def work(client: Client, settings: Settings) -> NoReturn:
    """Do transactions for ever."""
    watchdog = threading.Timer(START_SECONDS * settings.patience, hang)
    watchdog.start()
    client.init_transactions()
    watchdog.cancel()
    tell(Step.READY)
    numbers = itertools.count(1)
    while True:
        records = client.read()
        if not records:
            continue
        number = next(numbers)
        doomed = settings.doom_every > 0 and number % settings.doom_every == 0
        watchdog = threading.Timer(HANG_SECONDS * settings.patience, hang)
        watchdog.start()
        try:
            client.begin()
            for record in records:
                client.write(record.partition, value_of(record, number, doomed=doomed))
            client.flush()
            tell(Step.WROTE, len(records))
            client.send_offsets(records)
            tell(Step.SENT_OFFSETS)
            if not doomed:
                client.commit()
                tell(Step.COMMITTED, json.dumps(reached(records)))
                continue
            client.abort()
            tell(Step.DOOMED, len(records))
            client.rewind()
        except Failed as failure:
            client.abort()
            tell(Step.ABORTED, failure)
            client.rewind()
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


class ConfluentClient:
    """confluent-kafka, that is librdkafka."""

    def __init__(self, settings: Settings) -> None:
        from confluent_kafka import Consumer, Producer

        common = {
            "bootstrap.servers": ",".join(settings.bootstrap),
            "log_level": 2,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 1_000,
        }
        self._source, self._target = settings.source, settings.target
        self._records_max = settings.records_max
        self._producer = Producer(
            {
                **common,
                "transactional.id": settings.transactional_id,
                "transaction.timeout.ms": settings.transaction_ms,
            }
        )
        self._consumer = Consumer(
            {
                **common,
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

    def init_transactions(self) -> None:
        self._call(lambda: self._producer.init_transactions(CALL_SECONDS_MAX))

    def read(self) -> list[Record]:
        found = []
        for message in self._consumer.consume(self._records_max, POLL_SECONDS):
            if message.error() is None:
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                assert isinstance(value, bytes)
                found.append(Record(partition, offset, value))
        # Of the generation in which these were read: offsets of another one must not count.
        self._metadata = self._consumer.consumer_group_metadata()
        return found

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def write(self, partition: int, value: bytes) -> None:
        self._call(lambda: self._producer.produce(self._target, value, partition=partition))

    def flush(self) -> None:
        self._call(lambda: self._producer.flush(CALL_SECONDS_MAX))

    def send_offsets(self, records: list[Record]) -> None:
        from confluent_kafka import TopicPartition

        offsets = [TopicPartition(self._source, *each) for each in reached(records).items()]
        self._call(
            lambda: self._producer.send_offsets_to_transaction(
                offsets, self._metadata, CALL_SECONDS_MAX
            )
        )

    def commit(self) -> None:
        self._call(lambda: self._producer.commit_transaction(CALL_SECONDS_MAX))

    def abort(self) -> None:
        self._call(lambda: self._producer.abort_transaction(CALL_SECONDS_MAX))

    def rewind(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        def seek_committed() -> None:
            assigned = self._consumer.assignment()
            for each in self._consumer.committed(assigned, CALL_SECONDS_MAX):
                offset = each.offset if each.offset >= 0 else OFFSET_BEGINNING
                self._consumer.seek(TopicPartition(each.topic, each.partition, offset))

        self._call(seek_committed)

    def _call(self, function: Callable[[], object]) -> None:
        """Call, again and again where the client says that this helps.

        Raises:
            Failed: the transaction must be given up.
            Fenced: nothing helps.
        """
        from confluent_kafka import KafkaError, KafkaException

        while True:
            try:
                function()
                return
            except KafkaException as exception:
                error = exception.args[0]
                assert isinstance(error, KafkaError)
                if error.retriable() or error.code() == KafkaError._TIMED_OUT:
                    continue
                if error.txn_requires_abort():
                    raise Failed(error) from exception
                raise Fenced(error) from exception


class KafkaPythonClient:
    """kafka-python."""

    def __init__(self, settings: Settings) -> None:
        from kafka import KafkaConsumer, KafkaProducer

        self._source, self._target = settings.source, settings.target
        self._records_max = settings.records_max
        common: dict[str, Any] = {
            "bootstrap_servers": settings.bootstrap,
            "reconnect_backoff_max_ms": 500,
            "metadata_max_age_ms": 1_000,
        }
        self._producer = KafkaProducer(
            **common,
            transactional_id=settings.transactional_id,
            transaction_timeout_ms=settings.transaction_ms,
        )
        self._consumer = KafkaConsumer(
            settings.source,
            **common,
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

    def init_transactions(self) -> None:
        self._call(self._producer.init_transactions)

    def read(self) -> list[Record]:
        batches = self._consumer.poll(timeout_ms=int(POLL_SECONDS * 1000))
        self._metadata = self._consumer.group_metadata()
        return [
            Record(each.partition, each.offset, each.value)
            for batch in batches.values()
            for each in batch
        ]

    def begin(self) -> None:
        self._sent: list[Any] = []
        self._call(self._producer.begin_transaction)

    def write(self, partition: int, value: bytes) -> None:
        self._call(
            lambda: self._sent.append(self._producer.send(self._target, value, partition=partition))
        )

    def flush(self) -> None:
        self._call(self._producer.flush)
        for each in self._sent:
            self._call(partial(each.get, CALL_SECONDS_MAX))

    def send_offsets(self, records: list[Record]) -> None:
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        offsets = {
            TopicPartition(self._source, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in reached(records).items()
        }
        self._call(lambda: self._producer.send_offsets_to_transaction(offsets, self._metadata))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        try:
            self._call(self._producer.abort_transaction)
        except Failed as failure:
            raise Fenced(failure) from failure

    def rewind(self) -> None:
        for each in self._consumer.assignment():
            offset = self._consumer.committed(each)
            if offset is None:
                self._consumer.seek_to_beginning(each)
            else:
                self._consumer.seek(each, offset)

    def _call(self, function: Callable[[], object]) -> None:
        from kafka.errors import IllegalStateError, KafkaError

        try:
            function()
        except (KafkaError, IllegalStateError) as error:
            if self._producer._transaction_manager.has_fatal_error():
                raise Fenced(repr(error)) from error
            raise Failed(repr(error)) from error


CLIENTS: dict[str, Callable[[Settings], Client]] = {
    "confluent-kafka": ConfluentClient,
    "kafka-python": KafkaPythonClient,
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
    errors: tuple[type[Exception], ...] = (Fenced, Failed, *_errors_of(settings.client))
    try:
        work(CLIENTS[settings.client](settings), settings)
    except errors as error:
        print(f"may not go on: {error!r}", file=sys.stderr)
        return FENCED_EXIT


if __name__ == "__main__":
    sys.exit(main())

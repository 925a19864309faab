"""The transactional producers of three client libraries, with one face."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol

CALL_SECONDS_MAX = 100.0


class Refused(Exception):
    """The client says that the transaction, or the producer, is lost."""


class TransactionalClient(Protocol):
    """A producer with a transactional id. Every call may raise `Refused`."""

    def init(self) -> None: ...
    def begin(self) -> None: ...

    def write(self, topic: str, *values: str) -> None:
        """Write records to partition 0, and wait until they are acknowledged."""

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        """Make an offset of partition 0 a part of the transaction."""

    def commit(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


class ConfluentTransactions:
    """confluent-kafka's."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from confluent_kafka import Producer

        self._bootstrap = bootstrap
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "log_level": 2,
                "linger.ms": 0,
            }
        )

    def init(self) -> None:
        self._call(lambda: self._producer.init_transactions(CALL_SECONDS_MAX))

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def write(self, topic: str, *values: str) -> None:
        errors: list[object] = []

        def told(error: object, _: object) -> None:
            errors.append(error)

        for value in values:
            self._call(partial(self._producer.produce, topic, value, partition=0, on_delivery=told))
        self._call(lambda: self._producer.flush(CALL_SECONDS_MAX))
        if any(errors) or len(errors) < len(values):
            raise Refused(errors)

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        metadata = consumer.consumer_group_metadata()
        self._call(
            lambda: self._producer.send_offsets_to_transaction(
                [TopicPartition(topic, 0, offset)], metadata, CALL_SECONDS_MAX
            )
        )
        consumer.close()

    def commit(self) -> None:
        self._call(lambda: self._producer.commit_transaction(CALL_SECONDS_MAX))

    def abort(self) -> None:
        self._call(lambda: self._producer.abort_transaction(CALL_SECONDS_MAX))

    def close(self) -> None:
        self._producer.purge()

    def _call(self, function: Callable[[], object]) -> None:
        from confluent_kafka import KafkaException

        try:
            function()
        except KafkaException as error:
            raise Refused(error) from error


class KafkaPythonTransactions:
    """kafka-python's."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
        )

    def init(self) -> None:
        self._call(self._producer.init_transactions)

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def write(self, topic: str, *values: str) -> None:
        def send() -> None:
            sent = [self._producer.send(topic, value.encode(), partition=0) for value in values]
            for each in sent:
                each.get(CALL_SECONDS_MAX)

        self._call(send)

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        offsets = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}
        self._call(lambda: self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=0)

    def _call(self, function: Callable[[], object]) -> None:
        from kafka.errors import IllegalStateError, KafkaError

        try:
            function()
        except (KafkaError, IllegalStateError) as error:
            raise Refused(repr(error)) from error


class AiokafkaTransactions:
    """aiokafka's, on an event loop that runs while a call does."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from aiokafka import AIOKafkaProducer

        self._loop = asyncio.new_event_loop()

        async def make() -> Any:
            return AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )

        self._producer = self._loop.run_until_complete(make())

    def init(self) -> None:
        self._call(self._producer.start())

    def begin(self) -> None:
        self._call(self._producer.begin_transaction())

    def write(self, topic: str, *values: str) -> None:
        async def send() -> None:
            for value in values:
                await self._producer.send_and_wait(topic, value.encode(), partition=0)

        self._call(send())

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        from aiokafka import TopicPartition

        offsets = {TopicPartition(topic, 0): offset}
        self._call(self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction())

    def abort(self) -> None:
        self._call(self._producer.abort_transaction())

    def close(self) -> None:
        from aiokafka.errors import KafkaError

        with contextlib.suppress(KafkaError, TimeoutError):  # one that is fenced cannot end well
            self._loop.run_until_complete(asyncio.wait_for(self._producer.stop(), 5))
        self._loop.close()

    def _call(self, call: Coroutine[Any, Any, object]) -> None:
        from aiokafka.errors import KafkaError

        try:
            self._loop.run_until_complete(asyncio.wait_for(call, CALL_SECONDS_MAX))
        except KafkaError as error:
            raise Refused(repr(error)) from error


CLIENTS: dict[str, Callable[[str, str, int], TransactionalClient]] = {
    "confluent-kafka": ConfluentTransactions,
    "kafka-python": KafkaPythonTransactions,
    "aiokafka": AiokafkaTransactions,
}

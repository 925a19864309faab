"""The transactional producers of three client libraries, with one face.

A library is imported when its client is made: a worker that is started often needs only one.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

CALL_SECONDS_MAX = 100.0
CLOSE_SECONDS_MAX = 5.0


class Refused(Exception):
    """The client says that the transaction is lost.

    Attributes:
        name: the client's name of the error.
        is_fatal: whether the producer is lost with it, so that it cannot even abort.
    """

    def __init__(self, error: object, name: str, *, is_fatal: bool) -> None:
        super().__init__(error)
        self.name = name
        self.is_fatal = is_fatal


class TransactionalClient(ABC):
    """A producer with a transactional id. Every call but `close` may raise `Refused`."""

    @abstractmethod
    def init(self) -> None: ...
    @abstractmethod
    def begin(self) -> None: ...
    @abstractmethod
    def produce(self, topic: str, partition: int, value: bytes) -> None: ...

    @abstractmethod
    def flush(self) -> None:
        """Wait until all that was produced is acknowledged."""

    def write(self, topic: str, *values: str) -> None:
        """Write records to partition 0, and wait until they are acknowledged."""
        for value in values:
            self.produce(topic, 0, value.encode())
        self.flush()

    @abstractmethod
    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: Any) -> None:
        """Make offsets by partition a part of the transaction.

        Args:
            topic: whose offsets.
            offsets: by partition.
            group: its id, or what a consumer of the same library gives as the group's metadata.
        """

    @abstractmethod
    def commit(self) -> None: ...
    @abstractmethod
    def abort(self) -> None: ...
    @abstractmethod
    def close(self) -> None: ...


def call_confluent(function: Callable[[], object]) -> None:
    """Call into confluent-kafka, again and again where it says that this helps."""
    from confluent_kafka import KafkaError, KafkaException

    while True:
        try:
            function()
            return
        except KafkaException as exception:
            error: KafkaError = exception.args[0]
            if error.retriable() or error.code() == KafkaError._TIMED_OUT:
                continue
            is_fatal = not error.txn_requires_abort()
            raise Refused(error, error.name(), is_fatal=is_fatal) from exception


class ConfluentTransactions(TransactionalClient):
    """confluent-kafka's, that is librdkafka's."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from confluent_kafka import Producer

        self._bootstrap = bootstrap
        self._failed: list[Any] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "log_level": 2,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 500,
                "topic.metadata.refresh.interval.ms": 1_000,
            }
        )

    def init(self) -> None:
        call_confluent(partial(self._producer.init_transactions, CALL_SECONDS_MAX))

    def begin(self) -> None:
        self._failed.clear()
        call_confluent(self._producer.begin_transaction)

    def produce(self, topic: str, partition: int, value: bytes) -> None:
        call_confluent(
            partial(
                self._producer.produce,
                topic,
                value,
                partition=partition,
                on_delivery=self._delivered,
            )
        )

    def _delivered(self, error: object, _: object) -> None:
        if error is not None:
            self._failed.append(error)

    def flush(self) -> None:
        call_confluent(partial(self._producer.flush, CALL_SECONDS_MAX))
        if self._failed or len(self._producer):
            raise Refused(self._failed, "not delivered", is_fatal=False)

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: Any) -> None:
        from confluent_kafka import Consumer, TopicPartition

        if isinstance(group, str):
            consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
            group = consumer.consumer_group_metadata()
            consumer.close()
        positions = [TopicPartition(topic, *each) for each in offsets.items()]
        send = self._producer.send_offsets_to_transaction
        call_confluent(partial(send, positions, group, CALL_SECONDS_MAX))

    def commit(self) -> None:
        call_confluent(partial(self._producer.commit_transaction, CALL_SECONDS_MAX))

    def abort(self) -> None:
        call_confluent(partial(self._producer.abort_transaction, CALL_SECONDS_MAX))

    def close(self) -> None:
        self._producer.purge()


class KafkaPythonTransactions(TransactionalClient):
    """kafka-python's."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from kafka import KafkaProducer

        self._sent: list[Any] = []
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            reconnect_backoff_max_ms=500,
            metadata_max_age_ms=1_000,
        )

    def init(self) -> None:
        self._call(self._producer.init_transactions)

    def begin(self) -> None:
        self._sent.clear()
        self._call(self._producer.begin_transaction)

    def produce(self, topic: str, partition: int, value: bytes) -> None:
        def send() -> None:
            self._sent.append(self._producer.send(topic, value, partition=partition))

        self._call(send)

    def flush(self) -> None:
        self._call(self._producer.flush)
        for each in self._sent:
            self._call(partial(each.get, CALL_SECONDS_MAX))

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: Any) -> None:
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        positions = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in offsets.items()
        }
        self._call(partial(self._producer.send_offsets_to_transaction, positions, group))

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
            is_fatal = bool(self._producer._transaction_manager.has_fatal_error())
            raise Refused(repr(error), type(error).__name__, is_fatal=is_fatal) from error


class AiokafkaTransactions(TransactionalClient):
    """aiokafka's, on an event loop that runs while a call does."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        from aiokafka import AIOKafkaProducer

        self._loop = asyncio.new_event_loop()
        self._sent: list[Any] = []

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
        self._sent.clear()
        self._call(self._producer.begin_transaction())

    def produce(self, topic: str, partition: int, value: bytes) -> None:
        async def send() -> None:
            self._sent.append(await self._producer.send(topic, value, partition=partition))

        self._call(send())

    def flush(self) -> None:
        async def delivered() -> None:
            await asyncio.gather(*self._sent)

        self._call(delivered())

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: Any) -> None:
        from aiokafka import TopicPartition

        positions = {TopicPartition(topic, each): offset for each, offset in offsets.items()}
        self._call(self._producer.send_offsets_to_transaction(positions, group))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction())

    def abort(self) -> None:
        self._call(self._producer.abort_transaction())

    def close(self) -> None:
        from aiokafka.errors import KafkaError

        with contextlib.suppress(KafkaError, TimeoutError):  # one that is fenced cannot end well
            self._loop.run_until_complete(
                asyncio.wait_for(self._producer.stop(), CLOSE_SECONDS_MAX)
            )
        self._loop.close()

    def _call(self, call: Coroutine[Any, Any, object]) -> None:
        from aiokafka.errors import KafkaError

        try:
            self._loop.run_until_complete(asyncio.wait_for(call, CALL_SECONDS_MAX))
        except KafkaError as error:
            raise Refused(repr(error), type(error).__name__, is_fatal=False) from error


CLIENTS: dict[str, Callable[[str, str, int], TransactionalClient]] = {
    "confluent-kafka": ConfluentTransactions,
    "kafka-python": KafkaPythonTransactions,
    "aiokafka": AiokafkaTransactions,
}

"""Writing records to their partitions in transactions, in the executors.

Each partition of the target has one producer, with a transactional id of its own that follows from
the job's name. A transaction holds a run of the partition's records and the position behind them.

1. `init_transactions` ends whatever a former run left open and fences its producer, should it
   still live. From here on nobody else can move the position.
2. The position is read. What lies before it is in the target already, and skipped.
3. Records are sent in the order of their offsets; a transaction ends after so many records, bytes
   or seconds with the position, and is committed.

Killed between any two steps, the next run finds the position either before or behind the
transaction, and the records with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SparkConnectorError
from ..kafka_source.kafka_settings import Settings, producer_settings
from ..worker_imports import forget_zip_importers
from .copy_positions import (
    COPY_TIMEOUT_S,
    Position,
    position_consumer,
    read_positions,
    require_plausible,
)
from .topic_target import TopicTarget

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

RECORDS_PER_TRANSACTION = 20_000
BYTES_PER_TRANSACTION = 32 << 20
SECONDS_PER_TRANSACTION = 10.0
ATTEMPTS_MAX = 5
SERVE_EVERY = 500

COPIED = "topic STRING, partition INT, copied BIGINT, skipped BIGINT"
COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")

PRODUCER = {
    "enable.idempotence": "true",
    "linger.ms": "20",
    "compression.type": "lz4",
    "queue.buffering.max.messages": "200000",
    # The broker says what is too large; librdkafka would refuse beyond 1 MB.
    "message.max.bytes": "1000000000",
}


class CopyResult(NamedTuple):
    """What a run copied."""

    rows: int
    skipped: int
    """Records that the target had already."""
    seconds: float


class CopyPlan(NamedTuple):
    """Settings of every task."""

    job: str
    settings: Settings
    target: TopicTarget
    records_per_transaction: int = RECORDS_PER_TRANSACTION


def copied(frame: DataFrame, plan: CopyPlan, tasks: int) -> list[Any]:
    """Write a frame's records; a row for each partition.

    Args:
        frame: with the columns of `COLUMNS`.
        plan: how.
        tasks: as many at most.
    """
    from pyspark.sql import functions as F

    ordered = (
        frame.select(
            "topic",
            "partition",
            "offset",
            F.unix_millis("timestamp").alias("timestamp"),
            "key",
            "value",
            "headers",
        )
        .repartition(max(1, tasks), "topic", "partition")
        .sortWithinPartitions("topic", "partition", "offset")
    )
    return ordered.mapInArrow(_copier(plan), COPIED).collect()


def _copier(plan: CopyPlan) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def copy(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        forget_zip_importers()
        current: _PartitionCopy | None = None
        for batch in batches:
            for row in zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True):
                if current is None or (current.topic, current.partition) != row[:2]:
                    if current is not None:
                        yield pa.RecordBatch.from_pylist([current.finish()])
                    current = _PartitionCopy(plan, row[0], row[1])
                current.take(row)
        if current is not None:
            yield pa.RecordBatch.from_pylist([current.finish()])

    def typed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        fields = [("topic", pa.string()), ("partition", pa.int32())]
        schema = pa.schema([*fields, ("copied", pa.int64()), ("skipped", pa.int64())])
        for batch in copy(batches):
            yield batch.cast(schema)

    return typed


class _PartitionCopy:
    """The copy of one partition, in one task.

    Args:
        plan: of the job.
        topic: of the source.
        partition: of both.
    """

    def __init__(self, plan: CopyPlan, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self._plan = plan
        self._target = plan.target.name_of(topic)
        self._producer = _new_producer(plan, self._target, partition, self._note)
        self._consumer = position_consumer(plan.settings, plan.job, settled=True)
        self._repeat(lambda: self._producer.init_transactions(COPY_TIMEOUT_S))
        where = (self._target, partition)
        position = read_positions(self._consumer, [where]).get(where)
        require_plausible(self._consumer, *where, position)
        self._position = position or Position(0, 0)
        self._skipped = 0
        self._copied = 0
        self._open: list[Any] = []
        self._open_bytes = 0
        self._open_since = 0.0
        self._failure: str | None = None

    def take(self, row: tuple[Any, ...]) -> None:
        """The next record in the order of offsets."""
        if row[2] < self._position.offset:
            self._skipped += 1
            return
        if not self._open:
            self._producer.begin_transaction()
            self._open_since = time.monotonic()
        self._open.append(row)
        self._open_bytes += len(row[4] or b"") + len(row[5] or b"")
        self._send(row)
        if len(self._open) % SERVE_EVERY == 0:
            self._producer.poll(0)
        if (
            len(self._open) >= self._plan.records_per_transaction
            or self._open_bytes >= BYTES_PER_TRANSACTION
            or time.monotonic() - self._open_since >= SECONDS_PER_TRANSACTION
        ):
            self._commit()

    def finish(self) -> dict[str, Any]:
        """Commit what is open; what was done."""
        if self._open:
            self._commit()
        self._consumer.close()
        return {
            "topic": self.topic,
            "partition": self.partition,
            "copied": self._copied,
            "skipped": self._skipped,
        }

    def _send(self, row: tuple[Any, ...]) -> None:
        from confluent_kafka import KafkaError, KafkaException

        _, partition, offset, timestamp_ms, key, value, headers = row
        if timestamp_ms <= 0:
            raise SparkConnectorError(
                f"offset {offset} of {self.topic}-{partition} has the timestamp {timestamp_ms} ms,"
                " which librdkafka cannot send: it would take the present for it"
            )
        pairs = [(each["key"], each["value"]) for each in headers or ()]
        while True:
            try:
                self._producer.produce(
                    self._target, value, key, partition, timestamp=timestamp_ms, headers=pairs
                )
                return
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                if error.args[0].code() == KafkaError._STATE:
                    return  # the transaction has failed already, and its end says why
                raise SparkConnectorError(
                    f"offset {offset} of {self.topic}-{partition} cannot be written to"
                    f" {self._target}: {error.args[0].str()}"
                ) from None

    def _note(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = error.str()

    def _commit(self) -> None:
        """End the transaction; where the broker wants it aborted, do it again."""
        from confluent_kafka import KafkaException

        position = Position(self._open[-1][2] + 1, self._position.records + len(self._open))
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                self._end_transaction(position)
                break
            except KafkaException as error:
                cause = error.args[0]
                if not cause.txn_requires_abort() or attempt == ATTEMPTS_MAX:
                    raise SparkConnectorError(
                        f"a transaction on {self._target}-{self.partition} failed:"
                        f" {self._failure or cause.str()}"
                    ) from None
                self._repeat(lambda: self._producer.abort_transaction(COPY_TIMEOUT_S))
                self._failure = None
                self._producer.begin_transaction()
                for row in self._open:
                    self._send(row)
        self._copied += len(self._open)
        self._position = position
        self._open = []
        self._open_bytes = 0

    def _end_transaction(self, position: Position) -> None:
        from confluent_kafka import TopicPartition

        where = TopicPartition(
            self._target, self.partition, position.offset, metadata=str(position.records)
        )
        group = self._consumer.consumer_group_metadata()
        self._repeat(
            lambda: self._producer.send_offsets_to_transaction([where], group, COPY_TIMEOUT_S)
        )
        self._repeat(lambda: self._producer.commit_transaction(COPY_TIMEOUT_S))

    def _repeat(self, call: Callable[[], Any]) -> None:
        """A call that times out may simply be made again, says librdkafka."""
        from confluent_kafka import KafkaException

        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                call()
                return
            except KafkaException as error:
                if not error.args[0].retriable() or attempt == ATTEMPTS_MAX:
                    raise


def _new_producer(
    plan: CopyPlan, topic: str, partition: int, note: Callable[[Any, Any], None]
) -> Any:
    from confluent_kafka import KafkaException, Producer

    own = {
        "transactional.id": f"odradek-copy-{plan.job}-{topic}-{partition}",
        "on_delivery": note,
        "delivery.report.only.error": True,
    }
    try:
        return Producer({**PRODUCER, **producer_settings(plan.settings), **own})
    except KafkaException as error:
        raise SparkConnectorError(
            f"a 'kafka.' option cannot be honoured: {error.args[0].str()}"
        ) from None

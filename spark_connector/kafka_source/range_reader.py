"""Reading a range of offsets in an executor.

A task reads one range of one partition, up to an offset that the driver has fixed. Compaction
and transactions leave gaps, so the end is reached with a record at or behind it, or where the
partition itself ends there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..batch_sizes import GATHERED_BYTES, bounded
from ..errors import SparkConnectorError
from ..worker_imports import forget_zip_importers
from .collection_pause import no_collection
from .columns import MessageColumns
from .direct_reader import DirectReader, reads_directly
from .fetch_sizes import FetchConsumer
from .kafka_settings import Settings
from .offset_ranges import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX = 10_000
"""Of a record batch; Spark's own bound for Arrow."""

GROWTH = 8
"""How many times the rows of the batch before a batch may have: what records take is only known of
those that have come."""

WAIT_S = 0.05
"""A call that asks for more messages than there are waits as long, so this bounds what a gap at
the end of a range costs."""

LOOK_S = 2.0
"""After so long without records the reader checks that the partition still exists."""

WATERMARKS_TIMEOUT_S = 30.0


class RangeSettings(NamedTuple):
    """Settings of every task of a query."""

    consumer: Settings
    columns: tuple[str, ...]
    fail_on_data_loss: bool
    batch_bytes_max: int
    poll_timeout_ms: int


def read_range(settings: RangeSettings, offsets: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The records of a range, as record batches.

    Raises:
        SparkConnectorError: records of it are gone (unless data loss is no failure), or no
            broker gives any within the poll timeout.
    """
    forget_zip_importers()
    if reads_directly(settings.consumer):
        direct = DirectReader(
            settings.consumer,
            offsets,
            settings.columns,
            settings.batch_bytes_max,
            settings.poll_timeout_ms,
        )
        yield from direct.batches()
        offsets = OffsetRange(offsets.topic, offsets.partition, direct.position, offsets.until)
        if offsets.size <= 0:
            return
    consumer = _CONSUMERS.taken(settings.consumer)
    reader = _RangeReader(settings, offsets, consumer)
    yield from reader.batches()
    _CONSUMERS.give_back(settings.consumer, consumer)


class _Consumers:
    """The consumer of this process's last task, kept for the next one of the same query.

    Spark runs tasks in a Python process one after another, and a new consumer has to connect and
    ask for metadata anew. One that failed is not given back, and so is closed.
    """

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._consumer: FetchConsumer | None = None

    def taken(self, settings: Settings) -> FetchConsumer:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            if self._settings == settings:
                return consumer
            consumer.consumer.close()
        return FetchConsumer(settings, _new_consumer)

    def give_back(self, settings: Settings, consumer: FetchConsumer) -> None:
        consumer.consumer.unassign()
        self._settings, self._consumer = settings, consumer


_CONSUMERS = _Consumers()


def _new_consumer(settings: dict[str, Any]) -> Any:
    try:
        from confluent_kafka import Consumer, KafkaException
    except ImportError:
        raise SparkConnectorError(
            "confluent-kafka is not installed where this task runs; install"
            " 'odradek[spark]' on every worker"
        ) from None
    try:
        return Consumer(settings)
    except KafkaException as error:
        raise SparkConnectorError(
            f"a 'kafka.' option cannot be honoured: {error.args[0].str()}"
        ) from None


class _RangeReader:
    """One task's reading.

    Args:
        settings: of the query.
        offsets: what is read.
        consumer: with nothing assigned.
    """

    def __init__(
        self, settings: RangeSettings, offsets: OffsetRange, consumer: FetchConsumer
    ) -> None:
        self._settings = settings
        self._range = offsets
        self._fetching = consumer
        self._rows_max = 1
        self._columns = MessageColumns(settings.columns, offsets.topic, offsets.partition)
        self._position = offsets.start
        self._is_done = offsets.size <= 0
        self._trouble = "no broker answered"

    @property
    def _consumer(self) -> Any:
        return self._fetching.consumer

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Until the end of the range."""
        if self._is_done:
            return
        self._assign(self._position)
        timeout_s = self._settings.poll_timeout_ms / 1000
        deadline = time.monotonic() + timeout_s
        look_at = time.monotonic() + LOOK_S
        while not self._is_done:
            before = self._position
            with no_collection():
                batch = self._next_batch()
            if batch is not None:
                yield from bounded(batch, self._settings.batch_bytes_max)
                del batch  # or it is there while the next one is made
            if not self._is_done and self._fetching.resize():
                self._assign(self._position)
            if self._position > before:
                deadline = time.monotonic() + timeout_s
                look_at = time.monotonic() + LOOK_S
            elif time.monotonic() > deadline:
                raise SparkConnectorError(
                    f"{self._name()} gave nothing from offset {self._position} on for"
                    f" {self._settings.poll_timeout_ms} ms (option 'kafkaConsumer.pollTimeoutMs'):"
                    f" {self._trouble}"
                )
            elif time.monotonic() > look_at:
                self._look_for_partition()
                look_at = time.monotonic() + LOOK_S

    def _next_batch(self) -> pa.RecordBatch | None:
        """What comes next, or None if nothing has come."""
        count_max = min(self._rows_max, self._range.until - self._position)
        records = self._records(self._consumer.consume(count_max, WAIT_S))
        if not records:
            return None
        batch = self._columns.batch(records)
        row_bytes = self._columns.size(batch, records) // len(records)
        fitting = min(GATHERED_BYTES, self._settings.batch_bytes_max) // max(row_bytes, 1)
        self._rows_max = max(1, min(ROWS_MAX, fitting, len(records) * GROWTH))
        return batch

    def _assign(self, offset: int) -> None:
        from confluent_kafka import TopicPartition

        place = TopicPartition(self._range.topic, self._range.partition, offset)
        self._consumer.assign([place])

    def _records(self, messages: Sequence[Any]) -> Sequence[Any]:
        """What of these belongs to the range; moves the position behind it."""
        if not messages:
            return messages
        error_of = type(messages[0]).error
        if any(map(error_of, messages)):
            records = []
            for message in messages:
                error = message.error()
                if error is None:
                    records.append(message)
                elif not self._is_done:
                    self._take_event(message, error, records)
            messages = records
            if not messages:
                return messages
        last = messages[-1].offset()
        if last >= self._range.until - 1:
            self._is_done = True
            if last >= self._range.until:
                messages = [each for each in messages if each.offset() < self._range.until]
        self._position = max(self._position, min(last + 1, self._range.until))
        return messages

    def _take_event(self, message: Any, error: Any, records: Sequence[Any]) -> None:
        """The end of the partition, the loss of records, or trouble that may pass."""
        from confluent_kafka import KafkaError

        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            self._position = max(self._position, min(message.offset(), self._range.until))
            self._is_done = message.offset() >= self._range.until
            self._trouble = f"it ends at {message.offset()}"
        elif code in (
            KafkaError._AUTO_OFFSET_RESET,
            KafkaError.OFFSET_OUT_OF_RANGE,
            KafkaError._UNKNOWN_PARTITION,
            KafkaError._UNKNOWN_TOPIC,
            KafkaError.UNKNOWN_TOPIC_OR_PART,
        ):
            behind = records[-1].offset() + 1 if records else self._position
            self._position = max(self._position, behind)
            self._lose(
                is_there=code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
            )
        elif error.fatal() or code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise SparkConnectorError(f"{self._name()} cannot be read: {error.str()}")
        else:
            # A broker that is away for a moment; or a group that may not be used, and is not.
            self._trouble = error.str()

    def _look_for_partition(self) -> None:
        """librdkafka waits for a partition to come back; one that was deleted does not."""
        from confluent_kafka import KafkaError, KafkaException

        try:
            found = self._consumer.list_topics(self._range.topic, LOOK_S)
        except KafkaException as error:
            self._trouble = error.args[0].str()
            return
        topic = found.topics.get(self._range.topic)
        is_unknown = topic is None or (
            topic.error is not None and topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
        )
        if is_unknown or (topic.error is None and self._range.partition not in topic.partitions):
            self._lose(is_there=False)

    def _lose(self, *, is_there: bool) -> None:
        """Records are gone: fail, or go on with the first that is left."""
        first, end = self._watermarks() if is_there else (-1, -1)
        if is_there and (end < 0 or first <= self._position <= end):
            # Nothing is lost: no broker can tell now, or one did not know all for a moment.
            self._trouble = "where it begins and ends could not be learnt"
            self._assign(self._position)
            return
        there = f"it has offsets {first} to {end}" if end >= 0 else "it is not there any more"
        if self._settings.fail_on_data_loss:
            raise SparkConnectorError(
                f"{self._name()} cannot be read from offset {self._position} on, for {there};"
                " option 'failOnDataLoss' set to false would go on with what is left"
            )
        if self._position < first < self._range.until:
            self._position = first
            self._assign(first)
        else:
            self._is_done = True

    def _watermarks(self) -> tuple[int, int]:
        """Where the partition begins and ends, -1 where that cannot be learnt."""
        from confluent_kafka import KafkaException, TopicPartition

        place = TopicPartition(self._range.topic, self._range.partition)
        try:
            first, end = self._consumer.get_watermark_offsets(
                place, timeout=WATERMARKS_TIMEOUT_S, cached=False
            )
        except KafkaException:
            return -1, -1
        return first, end

    def _name(self) -> str:
        return f"partition {self._range.partition} of {self._range.topic!r}"

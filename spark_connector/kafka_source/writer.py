"""Writing frames to topics, by a producer in each task.

As with Spark's own sink, a task that fails is tried again and its records may come twice; what
each attempt sends is written once and in order, since the producer is idempotent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)

from ..errors import SparkConnectorError
from ..option_values import Options
from ..worker_imports import forget_zip_importers
from .cluster import admin_client
from .collection_pause import no_collection
from .kafka_settings import Settings, kafka_settings, producer_settings
from .rows_to_write import RowLayout, row_layout

if TYPE_CHECKING:
    import pyarrow as pa

FLUSH_POLL_S = 0.1
FLUSH_S = 1.0

DEFAULTS = {
    # Java's defaults, where librdkafka's are others.
    "enable.idempotence": "true",
    "partitioner": "murmur2_random",
    "message.timeout.ms": "120000",
    "linger.ms": "5",
    "message.max.bytes": "1048576",
    "queue.buffering.max.messages": "200000",
}

UNACKNOWLEDGED = ("0", "1")


class Written(WriterCommitMessage):
    """A task has written all its rows."""


def write_settings(options: Options) -> Settings:
    """The settings of the executors' producers.

    Raises:
        SparkConnectorError: an option cannot be honoured.
    """
    given = producer_settings(kafka_settings(options))
    settings = {**DEFAULTS, **given}
    acks = given.get("acks", given.get("request.required.acks", "all"))
    if acks in UNACKNOWLEDGED and "enable.idempotence" not in given:
        settings["enable.idempotence"] = "false"
    admin_client({name: value for name, value in given.items() if name == "bootstrap.servers"})
    return settings


class _TopicWriter:
    """What batches and streams have in common: it is sent to the executors.

    Args:
        settings: of the producers.
        layout: of the rows.
    """

    def __init__(self, settings: Settings, layout: RowLayout) -> None:
        self._settings = settings
        self._layout = layout

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Send the rows of a task, and wait until all are acknowledged."""
        forget_zip_importers()
        task = _WriteTask(self._settings, self._layout)
        for batch in iterator:
            with no_collection():
                task.send(batch)
        task.finish()
        return Written()


class KafkaBatchWriter(_TopicWriter, DataSourceArrowWriter):
    """Writes a frame."""


_STREAM_WRITER: Any = getattr(datasource, "DataSourceStreamArrowWriter", DataSourceStreamWriter)
"""Spark 4.1 has one for Arrow; 4.0 hands Arrow to a stream's writer that is a batch's, too."""


class KafkaStreamWriter(_TopicWriter, _STREAM_WRITER, DataSourceArrowWriter):  # type: ignore[misc]  # found at run time
    """Writes micro-batches."""

    def commit(self, messages: list[Any], batchId: int) -> None:  # type: ignore[override]  # a stream's
        """All is in the topics already."""

    def abort(self, messages: list[Any], batchId: int) -> None:  # type: ignore[override]  # a stream's
        """What was sent stays sent, as with Spark's own sink."""


def batch_writer(options: Options, schema: Any, overwrite: bool) -> KafkaBatchWriter:
    """Of `write`.

    Raises:
        SparkConnectorError: the options or the columns will not do.
    """
    if overwrite:
        raise SparkConnectorError(
            "a topic cannot be overwritten, only appended to: use mode('append')"
        )
    return KafkaBatchWriter(write_settings(options), row_layout(options, schema))


def stream_writer(options: Options, schema: Any) -> KafkaStreamWriter:
    """Of `writeStream`.

    Raises:
        SparkConnectorError: the options or the columns will not do.
    """
    return KafkaStreamWriter(write_settings(options), row_layout(options, schema))


class _WriteTask:
    """The producer of one task."""

    def __init__(self, settings: Settings, layout: RowLayout) -> None:
        self._layout = layout
        self._failure: str | None = None
        # Of a record that was written no report is needed.
        reports = {"on_delivery": self._note, "delivery.report.only.error": True}
        self._producer = _new_producer({**settings, **reports})

    def _note(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = f"a record for topic {message.topic()!r} was not written: {error.str()}"

    def send(self, batch: pa.RecordBatch) -> None:
        """Hand a batch's rows to the producer, waiting while it has too much."""
        layout, count = self._layout, batch.num_rows
        values = _bytes_of(batch, layout.value_at)
        keys = _bytes_of(batch, layout.key_at)
        headers = _values_of(batch, layout.headers_at, count)
        partitions = _values_of(batch, layout.partition_at, count)
        topics = (
            [layout.topic] * count
            if layout.topic_at is None
            else batch.column(layout.topic_at).to_pylist()
        )
        if layout.headers_at is None and layout.partition_at is None:
            self._send_plain(topics, keys, values)
            return
        for topic, key, value, row_headers, partition in zip(
            topics, keys, values, headers, partitions, strict=True
        ):
            more: dict[str, Any] = {}
            if row_headers:
                more["headers"] = [(each["key"], each["value"]) for each in row_headers]
            if partition is not None:
                more["partition"] = _possible(partition)
            self._produce(topic, value, key, more)

    def _send_plain(self, topics: list[Any], keys: list[Any], values: list[Any]) -> None:
        """The common case, without a dictionary for each row."""
        from confluent_kafka import KafkaException

        produce = self._producer.produce
        for topic, key, value in zip(topics, keys, values, strict=True):
            try:
                produce(topic, value, key)
            except (BufferError, TypeError, KafkaException):
                self._produce(topic, value, key, {})
        self._serve(0.0)

    def _produce(self, topic: Any, value: Any, key: Any, more: dict[str, Any]) -> None:
        from confluent_kafka import KafkaException

        if topic is None:
            raise SparkConnectorError(
                "a row has null in its column 'topic'; give option 'topic', which is for all rows"
            )
        while True:
            try:
                self._producer.produce(topic, value, key, **more)
                return
            except BufferError:
                self._serve(FLUSH_POLL_S)
            except KafkaException as error:
                raise SparkConnectorError(
                    f"a record for topic {topic!r} was not written: {error.args[0].str()}"
                ) from None

    def _serve(self, wait_s: float) -> None:
        self._producer.poll(wait_s)
        if self._failure is not None:
            raise SparkConnectorError(self._failure)

    def finish(self) -> None:
        """Wait for the rest; how long is bounded by the time a record may take."""
        while self._producer.flush(FLUSH_S):
            self._serve(0.0)
        self._serve(0.0)


def _new_producer(settings: dict[str, Any]) -> Any:
    try:
        from confluent_kafka import KafkaException, Producer
    except ImportError:
        raise SparkConnectorError(
            "confluent-kafka is not installed where this task runs; install"
            " 'odradek[spark]' on every worker"
        ) from None
    try:
        return Producer(settings)
    except KafkaException as error:
        raise SparkConnectorError(
            f"a 'kafka.' option cannot be honoured: {error.args[0].str()}"
        ) from None


def _bytes_of(batch: pa.RecordBatch, place: int | None) -> list[Any]:
    import pyarrow as pa

    if place is None:
        return [None] * batch.num_rows
    column = batch.column(place)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(
            pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary()
        )
    values: list[Any] = column.to_pylist()
    return values


def _values_of(batch: pa.RecordBatch, place: int | None, count: int) -> list[Any]:
    if place is None:
        return [None] * count
    values: list[Any] = batch.column(place).to_pylist()
    return values


def _possible(partition: int) -> int:
    """librdkafka takes -1 for no partition; here it is as wrong as Java's producer says."""
    if partition < 0:
        raise SparkConnectorError(f"a row has the impossible {partition} in its column 'partition'")
    return partition

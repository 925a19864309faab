"""Which topics of which cluster a pipeline reads, and by which of the two sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SparkConnectorError
from ..kafka_source.cluster import KafkaOffsetReader
from ..kafka_source.offset_limits import TopicPartition
from ..kafka_source.options import read_options
from ..kafka_source.stream_offsets import to_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("kafka", "odradek")
NO_OPTIONS: Mapping[str, str] = {}
UNTIL_LATEST = "stopAtLatest"
"""The option of `odradek` that stands for a trigger AvailableNow: see its stream reader."""


class TopicSource(NamedTuple):
    """Topics of a cluster."""

    bootstrap_servers: str
    topics: tuple[str, ...] = ()
    """Names; without any, `pattern` says which."""
    pattern: str | None = None
    """A regular expression that matches the whole name of a topic."""
    kafka_options: Mapping[str, str] = NO_OPTIONS
    """Settings of Kafka's clients by Java's names, such as `security.protocol`."""
    format: str = "kafka"
    """`kafka` is Spark's own source; `odradek` needs no jar."""
    reads_committed: bool = True
    """Whether records of open and aborted transactions are left out."""

    def options(self) -> dict[str, str]:
        """The options of Spark's Kafka source.

        Raises:
            SparkConnectorError: no topics are named, or both ways.
        """
        if bool(self.topics) == (self.pattern is not None):
            raise SparkConnectorError("give either names of topics or a pattern")
        if self.format not in FORMATS:
            raise SparkConnectorError(f"there is no source {self.format!r}; it is kafka or odradek")
        options = {f"kafka.{name}": value for name, value in self.kafka_options.items()}
        options["kafka.bootstrap.servers"] = self.bootstrap_servers
        options["includeHeaders"] = "true"
        if self.reads_committed:
            options["kafka.isolation.level"] = "read_committed"
        if self.pattern is not None:
            options["subscribePattern"] = self.pattern
        else:
            options["subscribe"] = ",".join(self.topics)
        return options

    def cluster(self) -> KafkaOffsetReader:
        """What the driver asks of the cluster; it connects at its first question."""
        return KafkaOffsetReader(read_options(self.options(), is_stream=False))

    def client_settings(self) -> dict[str, str]:
        """The settings for clients of librdkafka."""
        return read_options(self.options(), is_stream=False).settings

    def read(self, spark: SparkSession, **options: str) -> DataFrame:
        """The records that are there."""
        return self._reader(spark, spark.read, options).load()  # type: ignore[no-any-return]  # py4j

    def read_stream(self, spark: SparkSession, **options: str) -> DataFrame:
        """The records as they come."""
        return self._reader(spark, spark.readStream, options).load()  # type: ignore[no-any-return]  # py4j

    def read_ranges(
        self,
        spark: SparkSession,
        ranges: Mapping[TopicPartition, tuple[int, int]],
        *,
        fail_on_data_loss: bool,
    ) -> DataFrame:
        """The records of some offsets.

        Args:
            spark: a session.
            ranges: of each partition the first offset, and the one behind the last.
            fail_on_data_loss: whether it is an error if some of them are gone.
        """
        numbers: dict[str, list[int]] = {}
        for topic, partition in sorted(ranges):
            numbers.setdefault(topic, []).append(partition)
        options = {
            "assign": json.dumps(numbers),
            "startingOffsets": json.dumps(to_json({each: ranges[each][0] for each in ranges})),
            "endingOffsets": json.dumps(to_json({each: ranges[each][1] for each in ranges})),
            "failOnDataLoss": str(fail_on_data_loss).lower(),
        }
        return self._reader(spark, spark.read, options, selects=False).load()  # type: ignore[no-any-return]  # py4j

    def ending(self, continuous_every: str | None) -> dict[str, str]:
        """The options of a stream that ends, if it does, with what is there now."""
        is_ours = self.format == "odradek" and continuous_every is None
        return {UNTIL_LATEST: "true"} if is_ours else {}

    def trigger(self, continuous_every: str | None) -> dict[str, Any]:
        """For a stream with the options of `ending`.

        Args:
            continuous_every: how often to look for more; None: the stream ends.
        """
        if continuous_every is not None:
            return {"processingTime": continuous_every}
        # Before Spark 4.2, AvailableNow makes one batch of all that such a source has.
        is_ours = self.format == "odradek"
        return {"processingTime": "0 seconds"} if is_ours else {"availableNow": True}

    def _reader(
        self, spark: SparkSession, reader: Any, options: dict[str, str], *, selects: bool = True
    ) -> Any:
        if self.format == "odradek":
            from ..data_sources import register

            register(spark)
        own = self.options()
        if not selects:
            own = {name: text for name, text in own.items() if not name.startswith("subscribe")}
        return reader.format(self.format).options(**own, **options)


def pipeline_session(spark: SparkSession) -> SparkSession:
    """A session of the same Spark with the pipelines' own settings.

    Dates are UTC's wherever it runs, and timestamps are in Parquet's own type, which every reader
    knows, rather than in the twelve bytes that Spark writes by default.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return session

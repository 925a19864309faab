"""`spark.read.format("odradek")`: planned by the driver, read by the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..errors import SparkConnectorError
from ..worker_imports import forget_zip_importers
from .cluster import KafkaOffsetReader, Offsets
from .filters import PushedFilters
from .offset_limits import OffsetLimit, TopicPartition
from .offset_ranges import OffsetRange, divide
from .options import ReadOptions
from .range_reader import RangeSettings, read_range

if TYPE_CHECKING:
    import pyarrow as pa


class KafkaBatchReader(DataSourceReader):
    """Reads what is in the topics when the query is planned.

    Args:
        options: of a batch.
        columns: the names of the requested columns, in order.
    """

    def __init__(self, options: ReadOptions, columns: Iterable[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._filters: Sequence[Any] = ()

    def partitions(self) -> list[InputPartition]:
        """A range of offsets for each task."""
        forget_zip_importers()
        filters = PushedFilters()
        filters.take(self._filters)
        return list(planned_ranges(self._options, KafkaOffsetReader(self._options), filters))

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Runs in an executor; None stands for a plan without any range."""
        if isinstance(partition, OffsetRange):
            yield from read_range(range_settings(self._options, self._columns), partition)


class FilteredBatchReader(KafkaBatchReader):
    """Leaves out what Spark's filters leave out; a class of its own, since Spark looks for it."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Spark 4.1 and later: the filters that Spark still has to apply."""
        self._filters = filters
        return PushedFilters().take(filters)


def range_settings(options: ReadOptions, columns: tuple[str, ...]) -> RangeSettings:
    """What the executors have to know."""
    return RangeSettings(
        consumer=options.consumer_settings(),
        columns=columns,
        fail_on_data_loss=options.fail_on_data_loss,
        batch_bytes_max=options.batch_bytes_max,
        poll_timeout_ms=options.poll_timeout_ms,
    )


def planned_ranges(
    options: ReadOptions, cluster: KafkaOffsetReader, filters: PushedFilters
) -> list[OffsetRange]:
    """The ranges of a batch.

    Raises:
        SparkConnectorError: an option names what the cluster does not have, or records that
            were requested are gone.
    """
    partitions = cluster.partitions()
    starts = cluster.resolved(options.start, partitions, is_start=True)
    assert options.end is not None
    ends = cluster.resolved(options.end, partitions, is_start=False)
    _require_order(starts, ends)
    requested = [each for each in partitions if filters.covers(*each)]
    if options.start.offsets is not None:
        starts |= _with_what_is_there(options, cluster.earliest(requested), starts)
    if options.end.offsets is not None:
        ends |= _not_beyond(options, cluster.latest(requested), ends)
    if filters.timestamp_ms is not None:
        starts = _not_before(cluster, filters.timestamp_ms, requested, starts)
    ranges = [
        OffsetRange(
            topic,
            partition,
            max(starts[topic, partition], filters.first_offset),
            min(ends[topic, partition], filters.until_offset),
        )
        for topic, partition in requested
    ]
    return divide(ranges, options.min_partitions, options.max_records_per_partition)


def _require_order(starts: Offsets, ends: Offsets) -> None:
    """As in Spark, whatever failOnDataLoss says: a mistake in the options is no loss of records."""
    for (topic, partition), start in starts.items():
        if start > ends[topic, partition]:
            raise SparkConnectorError(
                f"partition {partition} of {topic!r} would be read from offset {start} to"
                f" {ends[topic, partition]}: the options begin behind the end, which is the end of"
                " the partition unless they say otherwise"
            )


def _with_what_is_there(options: ReadOptions, earliest: Offsets, starts: Offsets) -> Offsets:
    """The starts that lie before the beginning of their log, moved there."""
    gone = {each: first for each, first in earliest.items() if starts[each] < first}
    for (topic, partition), first in gone.items():
        if options.fail_on_data_loss:
            raise SparkConnectorError(
                f"option {options.start.option!r} begins at {starts[topic, partition]} in"
                f" partition {partition} of {topic!r}, whose first offset now is {first}; option"
                " 'failOnDataLoss' set to false would go on with what is left"
            )
    return gone


def _not_beyond(options: ReadOptions, latest: Offsets, ends: Offsets) -> Offsets:
    """The ends that lie behind the end of their log, moved there."""
    missing = {each: last for each, last in latest.items() if ends[each] > last}
    for (topic, partition), last in missing.items():
        if options.fail_on_data_loss:
            raise SparkConnectorError(
                f"option 'endingOffsets' ends at {ends[topic, partition]} in partition"
                f" {partition} of {topic!r}, which ends at {last}; option 'failOnDataLoss' set to"
                " false would stop there"
            )
    return missing


def _not_before(
    cluster: KafkaOffsetReader, timestamp_ms: int, requested: list[TopicPartition], starts: Offsets
) -> Offsets:
    limit = OffsetLimit("timestamp", timestamp_ms=timestamp_ms, latest_if_none_as_late=True)
    found = cluster.resolved(limit, requested, is_start=True)
    return {**starts, **{each: max(starts[each], found[each]) for each in requested}}

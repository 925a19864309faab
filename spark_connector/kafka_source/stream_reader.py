"""`spark.readStream.format("odradek")`: what each micro-batch reads.

Spark 4.2 gives a Python source a limit for each batch, and announces AvailableNow. Before,
it only asks for the latest offset, and `maxOffsetsPerTrigger` is carried out by remembering where
the last batch ended. Under AvailableNow such a Spark does one batch (after a run that was killed,
only what is left of its batch), and asks in just the same way as under other triggers. So the first
batch of a run takes everything, whatever the limit, and the later ones keep to it. Who does not use
AvailableNow may have the first one limited, too: `limitFirstBatch`. With `stopAtLatest` a run under
another trigger reads what AvailableNow would, in batches of the size that is set: when
`processAllAvailable()` returns, that is done, and the query may be stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from ..errors import SparkConnectorError
from .batch_reader import range_settings
from .cluster import KafkaOffsetReader, Offsets, UnknownTopicError
from .offset_ranges import OffsetRange, divide
from .options import ReadOptions
from .range_reader import read_range
from .stream_offsets import from_json, to_json
from .trigger_limits import DelayedBatches, limited

if TYPE_CHECKING:
    import pyarrow as pa

Json = dict[str, Any]


class StreamPlan:
    """The driver's side of one query: asks the cluster, decides on batches.

    Args:
        options: of a stream.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._cluster = KafkaOffsetReader(options)
        self._initial: Offsets | None = None
        self._delayed: DelayedBatches | None = None
        if options.min_offsets_per_trigger is not None:
            self._delayed = DelayedBatches(
                options.min_offsets_per_trigger, options.max_trigger_delay_ms
            )

    def initial(self) -> Offsets:
        """Where a new query begins: resolved once, since the answer changes."""
        if self._initial is None:
            partitions = self._cluster.partitions()
            self._initial = self._cluster.resolved(self._options.start, partitions, is_start=True)
        return self._initial

    def latest(self, known: Offsets) -> Offsets:
        """Where the partitions end now; those that have vanished stay where they were known."""
        try:
            partitions = self._cluster.partitions()
        except UnknownTopicError:
            if self._options.fail_on_data_loss or not known:
                raise
            return known
        return self._cluster.latest_after(known, partitions)

    def batch_end(self, start: Offsets, latest: Offsets, limit: int | None) -> Offsets:
        """Where the batch ends that begins at `start`; there, if it is held back.

        Args:
            start: the end of the batch before.
            latest: where the partitions end now.
            limit: so many offsets at most, where there is a limit.
        """
        added = [each for each in latest if each not in start]
        begins = {**start, **self._cluster.earliest(added)}
        now_ms = time.monotonic_ns() // 1_000_000
        if self._delayed is not None and self._delayed.holds_back(begins, latest, now_ms):
            return start
        return latest if limit is None else limited(limit, begins, latest)

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """What the tasks of a batch read.

        Raises:
            SparkConnectorError: records between its offsets are gone, and that is a failure.
        """
        begins = dict(start)
        added = [each for each in end if each not in start]
        for (topic, partition), offset in self._cluster.earliest(added).items():
            begins[topic, partition] = offset
            if offset != 0:
                self._lose(f"partition {partition} of {topic!r} is new and begins at {offset}")
        for topic, partition in sorted(set(start) - set(end)):
            self._lose(f"partition {partition} of {topic!r} is gone")
        for topic, partition in end:
            first, last = begins[topic, partition], end[topic, partition]
            if last < first:
                self._lose(
                    f"partition {partition} of {topic!r} ends at {last}, before the {first} read"
                    " so far"
                )
        ranges = [OffsetRange(*each, begins[each], end[each]) for each in sorted(end)]
        options = self._options
        return divide(ranges, options.min_partitions, options.max_records_per_partition)

    def _lose(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise SparkConnectorError(
                f"records may have been lost: {what}; option 'failOnDataLoss' set to false would"
                " go on with what is left"
            )


class KafkaStreamReader(DataSourceStreamReader):
    """For Spark 4.0 and 4.1.

    Args:
        options: of a stream.
        columns: the names of the requested columns, in order.
    """

    def __init__(self, options: ReadOptions, columns: Iterable[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._plan: StreamPlan | None = None
        self._position: Offsets | None = None
        """The end of the last batch, once Spark has passed it on."""
        self._is_past_first_batch = options.limit_first_batch or options.stop_at_latest
        self._end: Offsets | None = None
        """Where a run ends that gives no more than is there when it begins."""

    def __getstate__(self) -> dict[str, Any]:
        """Executors get no connection."""
        return {**self.__dict__, "_plan": None}

    @property
    def plan(self) -> StreamPlan:
        """Made where it is first needed, which is in the driver."""
        if self._plan is None:
            self._plan = StreamPlan(self._options)
        return self._plan

    def initialOffset(self) -> Json:
        """Where a query without a checkpoint begins."""
        initial = self.plan.initial()
        if self._position is None:
            self._position = initial
        return to_json(initial)

    def latestOffset(self) -> Json:
        """Where the next batch ends."""
        latest = self._end
        if latest is None:
            latest = self.plan.latest(self._position or {})
            self._end = latest if self._options.stop_at_latest else None
        if not self._is_past_first_batch:
            self._is_past_first_batch = True
            return to_json(latest)
        start = self.plan.initial() if self._position is None else self._position
        limit = self._options.max_offsets_per_trigger
        return to_json(self.plan.batch_end(start, latest, limit))

    def partitions(self, start: Json, end: Json) -> list[InputPartition]:
        """A range of offsets for each task; after a restart this is how Spark says where it was."""
        self._position = from_json(end)
        if start == end:
            return []
        return list(self.plan.ranges(from_json(start), self._position))

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Runs in an executor."""
        if isinstance(partition, OffsetRange):
            yield from read_range(range_settings(self._options, self._columns), partition)

    def commit(self, end: Json) -> None:
        """A batch is through; its offsets are kept by Spark."""
        self._position = from_json(end)

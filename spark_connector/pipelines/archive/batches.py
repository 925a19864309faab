"""Batches of a topic's offsets, appended to a table until it has what the topics have.

The table says where it is. A batch is planned from there, and is committed with where it ends, if
no other was committed in between. So a run may be killed at any point, or two may run at once.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import SparkConnectorError
from ...kafka_source.cluster import KafkaOffsetReader, Offsets
from ...kafka_source.trigger_limits import limited
from ..progress import StepClock
from .duplicates import without_duplicates
from .evolution import fitted
from .failures import failures_reported
from .position import ArchivePosition
from .settings import ArchiveSettings
from .table import ArchiveTable, TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOST_RACES_MAX = 10
"""So often in turn another run may be quicker."""

Shape = Callable[["DataFrame"], "DataFrame"]


class TableArchive:
    """A run that archives to a table.

    Args:
        session: that reads and writes.
        settings: of the archive.
        table: it is there.
        shape: makes a table's rows of a source's.
        clock: is told how far it is.
    """

    def __init__(
        self,
        session: SparkSession,
        settings: ArchiveSettings,
        table: ArchiveTable,
        shape: Shape,
        clock: StepClock,
    ) -> None:
        self._session = session
        self._settings = settings
        self._table = table
        self._shape = shape
        self._clock = clock
        self._cluster: KafkaOffsetReader = settings.source.cluster()
        self.rows = 0
        self.batches = 0

    def run(self) -> None:
        """Archive what the topics hold now; or go on, if the settings say so, until interrupted.

        Raises:
            SparkConnectorError: the cluster, the table or its catalog will not do.
        """
        every = self._settings.continuous_every
        pause_s = None if every is None else interval_seconds(self._session, every)
        while True:
            self._archive_until(self._cluster.latest(self._cluster.partitions()))
            if pause_s is None:
                return
            time.sleep(pause_s)

    def _archive_until(self, latest: Offsets) -> None:
        lost_races = 0
        while True:
            state = self._table.state()
            start = self._start(state, latest)
            lag = sum(max(0, end - start[each]) for each, end in latest.items())
            self._clock.tell(self.rows, lag)
            if not lag:
                return
            ends = limited(self._settings.offsets_per_batch_max, start, latest)
            count = self._append(state, start, ends)
            lost_races = lost_races + 1 if count is None else 0
            if lost_races > LOST_RACES_MAX:
                raise SparkConnectorError(
                    f"other runs archive to {self._table.title} and were quicker"
                    f" {lost_races} times in turn; leave it to them, or stop them"
                )

    def _append(self, state: TableState, start: Offsets, ends: Offsets) -> int | None:
        ranges = {each: (start[each], end) for each, end in ends.items() if end > start[each]}
        known = {} if state.position is None else state.position.offsets
        reached = {each: max(end, start[each]) for each, end in ends.items()}
        position = ArchivePosition(uuid.uuid4().hex, {**known, **reached})
        with failures_reported(self._table.title):
            records = self._settings.source.read_ranges(
                self._session, ranges, fail_on_data_loss=self._settings.fail_on_data_loss
            )
            frame = fitted(self._shape(records), self._table)
            part = self._settings.deduplicate_by
            if part is not None:
                within = self._settings.deduplicate_within
                frame = without_duplicates(frame, self._table.read(), part, within)
            count = self._table.append(
                frame, position, state.predecessor, self._settings.gathers_days
            )
        if count is not None:
            self.rows += count
            self.batches += 1
        return count

    def _start(self, state: TableState, latest: Offsets) -> Offsets:
        """Where to begin in each partition.

        Raises:
            SparkConnectorError: what was not archived is gone, or the topic was made anew.
        """
        known = {} if state.position is None else state.position.offsets
        unknown = {each for each in latest if each not in known}
        if unknown and not state.is_empty:
            known = {**_ends_of_rows(self._table, unknown), **known}
        earliest = self._cluster.earliest(latest)
        if self._settings.fail_on_data_loss:
            _refuse_losses(known, earliest, latest, self._table.title)
        return {each: max(known.get(each, 0), earliest[each]) for each in latest}


def _ends_of_rows(table: ArchiveTable, partitions: set[tuple[str, int]]) -> Offsets:
    """How far the records themselves reach, where no commit says so any more."""
    from pyspark.sql import functions as F

    topics = sorted({topic for topic, _ in partitions})
    with failures_reported(table.title):
        rows = (
            table.read()
            .where(F.col("topic").isin(topics))
            .groupBy("topic", "partition")
            .agg(F.max("offset").alias("last"))
            .collect()
        )
    found = {(row["topic"], row["partition"]): row["last"] + 1 for row in rows}
    return {each: end for each, end in found.items() if each in partitions}


def _refuse_losses(known: Offsets, earliest: Offsets, latest: Offsets, title: str) -> None:
    for each, end in sorted(latest.items()):
        position, (topic, partition) = known.get(each), each
        if position is None:
            continue
        if end < position:
            raise SparkConnectorError(
                f"partition {partition} of {topic} ends at offset {end}, but {title} has it up to"
                f" {position}: the topic was made anew, or has lost records; archive it to another"
                " table, or give --no-fail-on-data-loss to wait until it is as long again"
            )
        if earliest[each] > position:
            raise SparkConnectorError(
                f"offsets {position} to {earliest[each] - 1} of partition {partition} of {topic}"
                f" were deleted before they were archived to {title}; go on without them by"
                " --no-fail-on-data-loss"
            )


def interval_seconds(session: SparkSession, text: str) -> float:
    """How long an interval of Spark's is, such as `10 seconds`.

    Raises:
        SparkConnectorError: it is none.
    """
    from pyspark.errors import PySparkException

    quoted = text.replace("'", "")
    sql = f"SELECT unix_millis(timestamp_millis(0) + INTERVAL '{quoted}') AS ms"
    try:
        (row,) = session.sql(sql).collect()
    except PySparkException:
        raise SparkConnectorError(f"{text!r} is no interval; write it as in '10 seconds'") from None
    return max(0.0, float(row["ms"]) / 1000)

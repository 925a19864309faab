"""A lake back to topics: each record once, in the order of its partition, as it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ..decoding.values import ERROR, dead_records
from ..errors import SparkConnectorError
from .archive.archive import archived_partitions, read_archive
from .archive.columns import COLUMNS
from .archive.settings import DEFAULT_TABLE, NO_PROPERTIES, PARQUET, TableLocation
from .copy_positions import Position, TopicPartition, position_consumer, read_positions
from .progress import OnProgress, StepClock, first_line, no_progress
from .topic_source import pipeline_session
from .topic_target import TopicNeeds, TopicTarget, ensure_topics
from .transactional_copy import RECORDS_PER_TRANSACTION, CopyPlan, CopyResult, copied

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POLL_S = 1.0
ROWS_PER_ARROW_BATCH = 2_000


class ReplaySettings(NamedTuple):
    """What is replayed, and where to."""

    folder: str
    """Of an archive that `archive_topics` made."""
    target: TopicTarget
    job: str = "replay"
    """Names the positions in the target cluster: a run of the same name goes on where the last
    one stopped."""
    topics: tuple[str, ...] = ()
    """Only these; without any, all."""
    table_format: str = "parquet"
    records_per_transaction: int = RECORDS_PER_TRANSACTION
    only_dead_letters: bool = False
    """Whether only those records are written whose values did not decode when they were archived,
    with headers that say where from and why: see `dead_letters`. Such a job needs a name of its
    own."""
    catalog: Mapping[str, str] = NO_PROPERTIES
    """Of a table of Iceberg: see `TableLocation`."""
    table: str = DEFAULT_TABLE
    """Likewise."""

    @property
    def location(self) -> TableLocation:
        """Of the archive's table."""
        return TableLocation(self.folder, self.catalog, self.table)


def replay_archive(
    spark: SparkSession, settings: ReplaySettings, on_progress: OnProgress = no_progress
) -> CopyResult:
    """Write what an archive holds to topics, and what of it they have already not again.

    Partition numbers, order within a partition, keys, values, headers, nulls and timestamps are
    the archive's. Offsets are not: transactions take some. Topics that are missing are made, with
    as many partitions as the archive's, and keep all they get. Where the archive's topic had the
    times of the broker (`LogAppendTime`), its replay has them as the times of the records.

    Raises:
        SparkConnectorError: the archive or the cluster will not do, or a topic holds what this
            job did not write.
    """
    session = pipeline_session(spark)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ROWS_PER_ARROW_BATCH))
    records = _records(session, settings)
    if settings.topics:
        from pyspark.sql import functions as F

        records = records.where(F.col("topic").isin(*settings.topics))
    planning = StepClock("planning", on_progress)
    planning.tell(0, None)
    held = _held(records)
    if settings.only_dead_letters and not held:
        return CopyResult(0, 0, planning.seconds)
    for topic in () if settings.only_dead_letters else settings.topics:
        if topic not in {each.topic for each in held}:
            raise SparkConnectorError(f"the archive {settings.folder} has no topic {topic!r}")
    noted = archived_partitions(session, settings.table_format, settings.location)
    ensure_topics(settings.target, _needs(held, noted, settings))
    plan = CopyPlan(
        settings.job,
        settings.target.settings(),
        settings.target,
        settings.records_per_transaction,
    )
    places = [(settings.target.name_of(each.topic), each.partition) for each in held]
    consumer = position_consumer(plan.settings, plan.job, settled=False)
    positions = read_positions(consumer, places)
    known = {
        (each.topic, each.partition): positions[place]
        for each, place in zip(held, places, strict=True)
        if place in positions
    }
    before = sum(position.records for position in known.values())
    total = sum(each.records for each in held)
    clock = StepClock("replaying", on_progress)
    with _reporting(consumer, places, before, total, clock):
        rows = run_copy(_from_positions(records, known, settings), plan, len(held))
    consumer.close()
    count = sum(row["copied"] for row in rows)
    clock.tell(count, 0)
    return CopyResult(count, total - count, clock.seconds)


def run_copy(frame: DataFrame, plan: CopyPlan, tasks: int) -> list[Any]:
    """`copied`, with Spark's failures as one sentence.

    Raises:
        SparkConnectorError: a task failed.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return copied(frame, plan, tasks)
    except (PySparkException, Py4JError) as error:
        raise SparkConnectorError(first_line(error)) from error


def _records(session: SparkSession, settings: ReplaySettings) -> DataFrame:
    if settings.table_format == PARQUET:
        frame = read_archive(session, settings.folder, with_errors=settings.only_dead_letters)
    else:
        frame = read_archive(
            session, settings.folder, settings.table_format, location=settings.location
        )
    if not settings.only_dead_letters:
        return frame.select(*COLUMNS)
    if ERROR not in frame.columns:
        raise SparkConnectorError(
            f"no values were decoded when {settings.folder} was archived, so none failed to"
        )
    return dead_records(frame.select(*COLUMNS, ERROR))


class _Held(NamedTuple):
    topic: str
    partition: int
    records: int
    record_bytes_max: int
    oldest_ms: int


def _held(records: DataFrame) -> list[_Held]:
    """What the archive has of each partition."""
    from pyspark.sql import functions as F

    size = F.coalesce(F.octet_length("key"), F.lit(0)) + F.coalesce(
        F.octet_length("value"), F.lit(0)
    )
    headers = F.coalesce(
        F.aggregate(
            "headers",
            F.lit(0),
            lambda sum, each: (
                sum
                + F.octet_length(each["key"])
                + F.coalesce(F.octet_length(each["value"]), F.lit(0))
            ),
        ),
        F.lit(0),
    )
    rows = (
        records.groupBy("topic", "partition")
        .agg(
            F.count("*").alias("records"),
            F.max(size + headers).alias("record_bytes_max"),
            F.min(F.unix_millis("timestamp")).alias("oldest_ms"),
        )
        .collect()
    )
    return [_Held(*row) for row in sorted(rows)]


def _needs(
    held: Sequence[_Held], noted: Mapping[str, int], settings: ReplaySettings
) -> dict[str, TopicNeeds]:
    needs: dict[str, TopicNeeds] = {}
    for each in held:
        name = settings.target.name_of(each.topic)
        known = needs.get(name, TopicNeeds(noted.get(each.topic, 1), 0, each.oldest_ms))
        needs[name] = TopicNeeds(
            max(known.partitions, each.partition + 1),
            max(known.record_bytes_max, each.record_bytes_max),
            min(known.oldest_ms or each.oldest_ms, each.oldest_ms),
        )
    return needs


def _from_positions(
    records: DataFrame, positions: Mapping[TopicPartition, Position], settings: ReplaySettings
) -> DataFrame:
    """What lies at or behind the positions; the tasks look again, once they are alone.

    Raises:
        SparkConnectorError: what lies before a position is not what was copied.
    """
    from pyspark.sql import functions as F

    if not positions:
        return records
    known = records.sparkSession.createDataFrame(
        [(*where, position.offset) for where, position in positions.items()],
        "topic STRING, partition INT, position BIGINT",
    )
    joined = records.join(F.broadcast(known), ["topic", "partition"], "left")
    before = joined.where("offset < position").groupBy("topic", "partition").count().collect()
    counts = {(row["topic"], row["partition"]): row["count"] for row in before}
    for (topic, partition), position in positions.items():
        found = counts.get((topic, partition), 0)
        if found != position.records:
            raise SparkConnectorError(
                f"the job {settings.job} has copied {position.records} records of partition"
                f" {partition} of {topic}, but up to there {settings.folder} has {found}: it is"
                " another archive, so give the job another name, and the topics another prefix"
            )
    return joined.where("position IS NULL OR offset >= position").drop("position")


@contextmanager
def _reporting(
    consumer: Any, places: Sequence[TopicPartition], before: int, total: int, clock: StepClock
) -> Iterator[None]:
    """Tell how far the positions are, while the tasks write."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(POLL_S):
            try:
                positions = read_positions(consumer, places)
            except SparkConnectorError:
                continue  # the tasks meet the same trouble, and say so
            now = sum(position.records for position in positions.values())
            clock.tell(now - before, max(0, total - now))

    clock.tell(0, total - before)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()

"""Topics to a lake: Parquet by topic and date, or an Iceberg table, each record once.

A batch of the query is a range of offsets in Spark's checkpoint, and becomes visible at once: the
names of its files in the log beside them (`_spark_metadata`), or a snapshot of the table. A run
that was killed in between does that batch again, with other files; those that no batch committed
are removed at the next start, so that readers which do not know of the log see the same records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..decoding.values import ERROR, SCHEMA_ID, ReadAs, Registry, decode_values
from ..errors import SparkConnectorError
from .archive_files import ArchiveFolder
from .iceberg import TABLE, create_table, table_at
from .progress import OnProgress, StepClock, follow_stream, no_progress
from .topic_source import TopicSource, pipeline_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS_PER_BATCH_MAX = 4_000_000

FILES_AT_ONCE = "16"
"""So many files of days and topics a task writes side by side; with more, Spark sorts the rest of
its records first, which takes half as long again."""

PARTITIONED_BY = ("topic", "date")

SCHEMA = (
    "partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, key BINARY,"
    " value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, date DATE"
)
"""The columns of Spark's Kafka source, and the day (UTC) of the record's timestamp."""


class ValueSettings(NamedTuple):
    """How values become columns beside their bytes: see `decode_values`."""

    registry: Registry | None
    read_as: ReadAs | Mapping[str, ReadAs]


class ArchiveSettings(NamedTuple):
    """What is archived, and where to."""

    source: TopicSource
    folder: str
    """Of the lake: a path, or a URI that Spark knows."""
    table_format: str = "parquet"
    """`parquet` or `iceberg`."""
    checkpoint: str | None = None
    """By default a folder `_checkpoint` in `folder`."""
    continuous_every: str | None = None
    """None: archive what is there now, and end. Else go on, at this interval (`30 seconds`)."""
    offsets_per_batch_max: int = OFFSETS_PER_BATCH_MAX
    fail_on_data_loss: bool = True
    """Whether it is an error that the cluster has deleted what was not archived yet."""
    gathers_days: bool = False
    """Whether all of a batch's records of a topic and day go to one file. Else each partition's
    have one of their own, which is quicker, but with many days leaves many small files."""
    values: ValueSettings | None = None
    """None: values are kept as bytes only. Else the archive has the columns of `decode_values` as
    well; what does not decode is archived like all else, and can be replayed as dead letters."""


class ArchiveResult(NamedTuple):
    """What a run did."""

    rows: int
    batches: int
    seconds: float
    removed_files: int
    """Files of an interrupted batch that were removed."""


def archive_topics(
    spark: SparkSession, settings: ArchiveSettings, on_progress: OnProgress = no_progress
) -> ArchiveResult:
    """Append to a lake what its topics hold and it does not.

    Keys, values, headers, partitions, offsets, timestamps and their types are kept, nulls and
    tombstones included. With the first run all that is in the topics is read; later runs go on
    where the last one stopped, wherever that was.

    Raises:
        SparkConnectorError: the cluster, the folder or its checkpoint will not do, or another run
            is at work in it.
    """
    if settings.table_format not in ("parquet", "iceberg"):
        raise SparkConnectorError(f"there is no table format {settings.table_format!r}")
    if settings.table_format == "iceberg" and settings.values is not None:
        raise SparkConnectorError(
            "values are decoded into archives of Parquet only; decode what the Iceberg table holds"
            " when it is read"
        )
    session = pipeline_session(spark)
    session.conf.set("spark.sql.maxConcurrentOutputFileWriters", FILES_AT_ONCE)
    is_parquet = settings.table_format == "parquet"
    checkpoint = settings.checkpoint or f"{settings.folder.rstrip('/')}/_checkpoint"
    folder = ArchiveFolder.at(settings.folder, checkpoint) if is_parquet else None
    partitions = settings.source.cluster().partitions()
    clock = StepClock("archiving", on_progress)
    removed = 0
    with folder.locked() if folder else nullcontext():
        if folder:
            folder.require_consistent()
            removed = folder.remove_uncommitted()
            folder.note_partitions(Counter(topic for topic, _ in partitions))
        query = _started(session, settings, checkpoint)
        stops = bool(settings.source.ending(settings.continuous_every))
        totals = follow_stream(query, clock, stops=stops)
    return ArchiveResult(totals.rows, totals.batches, clock.seconds, removed)


def _started(session: SparkSession, settings: ArchiveSettings, checkpoint: str):  # type: ignore[no-untyped-def]  # a query; Spark's classes are imported late
    records = settings.source.read_stream(
        session,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=str(settings.offsets_per_batch_max),
        failOnDataLoss=str(settings.fail_on_data_loss).lower(),
        **settings.source.ending(settings.continuous_every),
    )
    archived = archived_columns(records)
    if settings.values is not None:
        archived = decode_values(archived, settings.values.registry, settings.values.read_as)
    if settings.gathers_days:
        archived = archived.repartition(*PARTITIONED_BY)
    writer = archived.writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", checkpoint)
    writer = writer.trigger(**settings.source.trigger(settings.continuous_every))
    if settings.table_format == "iceberg":
        create_table(session, settings.folder, SCHEMA, PARTITIONED_BY)
        return writer.format("iceberg").option("fanout-enabled", "true").toTable(TABLE)
    return writer.format("parquet").partitionBy(*PARTITIONED_BY).start(settings.folder)


def archived_columns(records: DataFrame) -> DataFrame:
    """The columns of an archive, of a source's."""
    from pyspark.sql import functions

    days = functions.floor(functions.unix_millis("timestamp") / 86_400_000).cast("int")
    epoch = functions.lit("1970-01-01").cast("date")
    frame = records.withColumn("date", functions.date_add(epoch, days))
    names = [part.strip().split(" ")[0] for part in SCHEMA.split(", ")]
    kept = {"partition", "offset", "timestamp", "timestampType", "key", "value", "headers"}
    return frame.select(*[name for name in names if name in kept], *PARTITIONED_BY)


def read_archive(
    spark: SparkSession, folder: str, table_format: str = "parquet", *, with_errors: bool = False
) -> DataFrame:
    """The records of an archive: a table with the columns of `SCHEMA`.

    Args:
        spark: a session.
        folder: of the lake.
        table_format: as it was archived.
        with_errors: with the columns, too, that say why values did not decode; null in an archive
            that has decoded none.

    Raises:
        SparkConnectorError: there is none in the folder.
    """
    if table_format == "iceberg":
        return table_at(spark, folder)
    if "://" not in folder and not (Path(folder) / "_spark_metadata").is_dir():
        raise SparkConnectorError(
            f"{folder} is no archive: it has no folder _spark_metadata, in which an archive notes"
            " its files"
        )
    # With the schema given, a topic called 2013 stays a text.
    errors = f", {ERROR} STRING, {SCHEMA_ID} INT" if with_errors else ""
    return spark.read.schema(SCHEMA + errors).parquet(folder)

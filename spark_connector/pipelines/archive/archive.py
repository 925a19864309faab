"""Topics to a lake, each record once: Parquet by topic and date, or a table.

An archive of Parquet is a streaming query. A batch of it is a range of offsets in Spark's
checkpoint, and becomes visible at once, by the names of its files in the log beside them
(`_spark_metadata`). A run that was killed in between does that batch again, with other files; those
that no batch committed are removed at the next start, so that readers which do not know of the log
see the same records. A table is its own checkpoint: see `batches`.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ...decoding.values import ERROR, SCHEMA_ID, decode_values
from ...errors import SparkConnectorError
from ..progress import OnProgress, StepClock, follow_stream, no_progress
from ..topic_source import pipeline_session
from .batches import TableArchive
from .columns import PARTITIONED_BY, SCHEMA, archived_columns
from .files import ArchiveFolder, noted_partitions
from .formats import table_at
from .settings import PARQUET, ArchiveResult, ArchiveSettings, TableLocation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES_AT_ONCE = "16"
"""So many files of days and topics a task writes side by side; with more, Spark sorts the rest of
its records first, which takes half as long again."""


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
    settings.check()
    session = pipeline_session(spark)
    clock = StepClock("archiving", on_progress)
    if settings.table_format == PARQUET:
        return _archived_as_files(session, settings, clock)
    table = table_at(session, settings.table_format, settings.location)
    table.ensure(SCHEMA, settings.partition_by or PARTITIONED_BY)
    run = TableArchive(session, settings, table, lambda frame: _shaped(frame, settings), clock)
    run.run()
    return ArchiveResult(run.rows, run.batches, clock.seconds, 0)


def _archived_as_files(
    session: SparkSession, settings: ArchiveSettings, clock: StepClock
) -> ArchiveResult:
    session.conf.set("spark.sql.maxConcurrentOutputFileWriters", FILES_AT_ONCE)
    checkpoint = settings.checkpoint or f"{settings.folder.rstrip('/')}/_checkpoint"
    folder = ArchiveFolder.at(settings.folder, checkpoint)
    partitions = settings.source.cluster().partitions()
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
    archived = _shaped(records, settings)
    if settings.gathers_days:
        archived = archived.repartition(*PARTITIONED_BY)
    writer = archived.writeStream.outputMode("append")
    writer = writer.option("checkpointLocation", checkpoint)
    writer = writer.trigger(**settings.source.trigger(settings.continuous_every))
    return writer.format("parquet").partitionBy(*PARTITIONED_BY).start(settings.folder)


def _shaped(records: DataFrame, settings: ArchiveSettings) -> DataFrame:
    """What is archived of a source's records."""
    archived = archived_columns(records)
    if settings.values is None:
        return archived
    return decode_values(archived, settings.values.registry, settings.values.read_as)


def read_archive(
    spark: SparkSession,
    folder: str,
    table_format: str = PARQUET,
    *,
    with_errors: bool = False,
    location: TableLocation | None = None,
) -> DataFrame:
    """The records of an archive: a table with the columns of `SCHEMA`, and others it may have.

    Args:
        spark: a session.
        folder: of the lake.
        table_format: as it was archived.
        with_errors: with the columns, too, that say why values did not decode; null in an archive
            that has decoded none.
        location: of a table that is not the folder's only one.

    Raises:
        SparkConnectorError: there is none in the folder.
    """
    if table_format != PARQUET:
        place = location or TableLocation(folder)
        return table_at(spark.newSession(), table_format, place).read()
    if "://" not in folder and not (Path(folder) / "_spark_metadata").is_dir():
        raise SparkConnectorError(
            f"{folder} is no archive: it has no folder _spark_metadata, in which an archive notes"
            " its files"
        )
    # With the schema given, a topic called 2013 stays a text.
    errors = f", {ERROR} STRING, {SCHEMA_ID} INT" if with_errors else ""
    return spark.read.schema(SCHEMA + errors).parquet(folder)


def archived_partitions(
    spark: SparkSession, table_format: str, location: TableLocation
) -> dict[str, int]:
    """How many partitions the topics of an archive have, as far as it says: some may be empty.

    Raises:
        SparkConnectorError: what it says cannot be read.
    """
    if table_format == PARQUET:
        return noted_partitions(location.folder)
    position = table_at(spark.newSession(), table_format, location).state().position
    offsets = {} if position is None else position.offsets
    return dict(Counter(topic for topic, _ in offsets))

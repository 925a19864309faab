"""Queries on replicas: first of their batches' headers, then of records in doubt.

A follower keeps the leader's batches as they are, so batches whose headers and checksums are equal,
and whose checksums are right, hold the same records. Only where that is not so are records looked
at: where compaction has been at work, and where something is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .report import SAMPLES_MAX

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

BATCH_COLUMNS = (
    "folder,topic,partition,baseOffset,lastOffset,size,leaderEpoch,crc,segment,hasValidCrc"
)
FIELDS = (
    "timestamp",
    "timestampType",
    "key",
    "value",
    "headers",
    "leaderEpoch",
    "producerId",
    "producerEpoch",
    "sequence",
    "isTransactional",
    "isControl",
)
"""In which records of the same offset can differ."""

PARTITION = ("topic", "partition")
PLAN = (
    "topic STRING, partition INT, begin BIGINT, until BIGINT, cleaned_to BIGINT,"
    " ends ARRAY<STRUCT<folder: STRING, end: BIGINT>>"
)


class Compared(NamedTuple):
    """Between which offsets a partition's replicas are compared."""

    topic: str
    partition: int
    begin: int
    until: int
    cleaned_to: int
    """Before it a record may be missing."""
    ends: tuple[tuple[str, int], ...]
    """Where the replica in each folder ends."""


def batches_of(spark: SparkSession, folders: Sequence[str], assign: str) -> DataFrame:
    """The headers of all batches that can be read, whether their checksums are right or not."""
    return _read(spark, folders, assign, "batches", BATCH_COLUMNS)


def records_of(
    spark: SparkSession, folders: Sequence[str], ranges: Mapping[tuple[str, int], tuple[int, int]]
) -> DataFrame:
    """The records, control records too, between two offsets of some partitions."""
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for (topic, partition), (begin, until) in ranges.items():
        starts.setdefault(topic, {})[str(partition)] = begin
        ends.setdefault(topic, {})[str(partition)] = until
    return _read(
        spark,
        folders,
        assigned(ranges),
        "records",
        ",".join(("folder", *PARTITION, "offset", *FIELDS)),
        startingOffsets=json.dumps(starts),
        endingOffsets=json.dumps(ends),
        includeControl="true",
    )


def assigned(partitions: Any) -> str:
    """Partitions in the JSON of the option `assign`."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return json.dumps(found)


def _read(
    spark: SparkSession,
    folders: Sequence[str],
    assign: str,
    table: str,
    columns: str,
    **options: str,
) -> DataFrame:
    reader = spark.read.format("odradek-log").option("table", table).option("columns", columns)
    # Damage is what is looked for: it is not to end the query, and indexes may be damaged too.
    reader = reader.option("mode", "DROPMALFORMED").option("useIndexes", "false")
    reader = reader.option("assign", assign).option("kafka.check.crcs", "false")
    return reader.options(**options).load(list(folders))


def ends_and_damage(batches: DataFrame) -> list[Any]:
    """By folder and partition: `end`, how many batches are `damaged`, and the first of them."""
    from pyspark.sql import functions as F

    wrong = ~F.col("hasValidCrc")
    return (
        batches.groupBy("folder", *PARTITION)
        .agg(
            (F.max("lastOffset") + 1).alias("end"),
            F.count_if(wrong).alias("damaged"),
            F.min(F.when(wrong, F.struct("baseOffset", "lastOffset", "segment"))).alias("first"),
        )
        .collect()
    )


def plan_frame(spark: SparkSession, compared: Sequence[Compared]) -> DataFrame:
    """A row for each partition, for joins."""
    return spark.createDataFrame([tuple(each) for each in compared], PLAN)


def ranges_in_doubt(batches: DataFrame, plan: DataFrame) -> dict[tuple[str, int], tuple[int, int]]:
    """By partition: between which offsets not all batches are proven to be the same."""
    from pyspark.sql import functions as F

    joined = batches.join(F.broadcast(plan), list(PARTITION))
    in_range = joined.where("lastOffset >= begin AND baseOffset < until")
    header = F.struct("lastOffset", "size", "leaderEpoch", "crc")
    same = in_range.groupBy(*PARTITION, "baseOffset").agg(
        F.count("*").alias("count"),
        F.min(header).alias("least"),
        F.max(header).alias("most"),
        F.bool_and("hasValidCrc").alias("is_sound"),
        F.max("lastOffset").alias("last"),
        F.first("begin").alias("begin"),
        F.first("until").alias("until"),
        F.first(_holders("baseOffset")).alias("holders"),
    )
    doubtful = same.where("NOT is_sound OR least != most OR count != size(holders)")
    rows = doubtful.groupBy(*PARTITION).agg(
        F.greatest(F.min("baseOffset"), F.first("begin")).alias("begin"),
        F.least(F.max("last") + 1, F.first("until")).alias("until"),
    )
    return {(row[0], row[1]): (row["begin"], row["until"]) for row in rows.collect()}


def _holders(offset: str) -> Column:
    """The folders whose replica reaches an offset."""
    from pyspark.sql import functions as F

    reaching = F.filter("ends", lambda each: each["end"] > F.col(offset))
    return F.transform(reaching, lambda each: each["folder"])


def differing_records(records: DataFrame, plan: DataFrame) -> list[Any]:
    """Records that are not the same everywhere: of each partition and kind the first few.

    Columns: topic, partition, kind, count, offset, fields (in which they differ), prints (folder
    and what stands there, as a fingerprint), absent (folders that lack it).
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    texts = [_text(name).alias(name) for name in FIELDS]
    joined = records.select("folder", *PARTITION, "offset", *texts).join(
        F.broadcast(plan), list(PARTITION)
    )
    in_range = joined.where("offset >= begin AND offset < until")
    aggregates = [F.min(name).alias(f"{name}_least") for name in FIELDS]
    aggregates += [F.max(name).alias(f"{name}_most") for name in FIELDS]
    places = in_range.groupBy(*PARTITION, "offset").agg(
        F.sort_array(
            F.collect_list(F.struct("folder", F.md5(F.concat_ws("\u0000", *FIELDS)).alias("print")))
        ).alias("prints"),
        F.first("cleaned_to").alias("cleaned_to"),
        F.first(_holders("offset")).alias("holders"),
        *aggregates,
    )
    unlike = [F.when(F.expr(f"{name}_least != {name}_most"), F.lit(name)) for name in FIELDS]
    there = F.transform("prints", lambda each: each["folder"])
    faulty = (
        places.withColumn("fields", F.array_compact(F.array(*unlike)))
        .withColumn("absent", F.array_except("holders", there))
        .withColumn(
            "kind",
            F.when(F.size("fields") > 0, F.lit("different")).when(
                (F.size("absent") > 0) & (F.col("offset") >= F.col("cleaned_to")), F.lit("missing")
            ),
        )
        .where("kind IS NOT NULL")
    )
    of_kind = Window.partitionBy(*PARTITION, "kind")
    counted = faulty.select(
        *PARTITION,
        "kind",
        F.count("*").over(of_kind).alias("count"),
        F.row_number().over(of_kind.orderBy("offset")).alias("place"),
        "offset",
        "fields",
        "prints",
        "absent",
    )
    return sorted(counted.where(F.col("place") <= SAMPLES_MAX).drop("place").collect())


def _text(name: str) -> Column:
    """A field as text that tells null from nothing; what may be long as its digest."""
    from pyspark.sql import functions as F

    column = F.col(name)
    if name in ("key", "value"):
        column = F.md5(column)
    elif name == "headers":
        column = F.md5(F.to_json(column))
    elif name == "timestamp":
        column = F.unix_micros(column)
    return F.coalesce(column.cast("string"), F.lit("-"))

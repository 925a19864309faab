"""The narrow table that an audit works on, and its queries per partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...decoding import decode_avro
from ...decoding.values import ERROR, decode_values
from ..record_fields import field_number, field_text
from .checks import Check, aggregates
from .report import AuditSettings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PERCENTILES = (0.5, 0.95, 0.99, 1.0)
ACCURACY = 2_000

PARTITION = ("topic", "partition")


def decoded(records: DataFrame, settings: AuditSettings) -> DataFrame:
    """The records, with columns of their values where the settings say what those are.

    Raises:
        SparkConnectorError: a schema or a registry will not do.
    """
    if settings.values is not None:
        return decode_values(records, settings.values.registry, settings.values.read_as)
    if settings.avro_schema is not None:
        return decode_avro(records, settings.avro_schema, skips_header=True)
    return records


def narrow(records: DataFrame, settings: AuditSettings, checks: Sequence[Check] = ()) -> DataFrame:
    """What an audit needs of each record of `decoded`, without its value.

    Columns: topic, partition, offset, ms, key, bytes, is_tombstone, is_poison, latency, number
    (of the sequence), scope (of the number), and those of the checks.
    """
    from pyspark.sql import functions as F

    ms = F.unix_millis("timestamp")
    number: Column = F.lit(None).cast("bigint")
    if settings.sequence is not None:
        number = field_number(settings.sequence)
    latency: Column = F.lit(None).cast("bigint")
    if settings.sent_at is not None:
        latency = ms - field_number(settings.sent_at)
    return records.select(
        *PARTITION,
        "offset",
        ms.alias("ms"),
        "key",
        (_length("key") + _length("value")).alias("bytes"),
        F.col("value").isNull().alias("is_tombstone"),
        _is_poison(settings).alias("is_poison"),
        latency.alias("latency"),
        number.alias("number"),
        _scope(settings.scope).alias("scope"),
        *[check.value.alias(check.column) for check in checks if check.value is not None],
    )


def _length(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.octet_length(name), F.lit(0)).cast("bigint")


def _scope(name: str) -> Column:
    from pyspark.sql import functions as F

    if name == "topic":
        return F.lit("")
    if name == "partition":
        return F.col("partition").cast("string")
    if name == "key":
        return F.coalesce(F.hex("key"), F.lit(""))  # a key need not be text
    return F.coalesce(field_text(name), F.lit(""))


def _is_poison(settings: AuditSettings) -> Column:
    from pyspark.sql import functions as F

    if settings.avro_schema is not None or settings.values is not None:
        return F.col(ERROR).isNotNull()
    if settings.decode == "none":
        return F.lit(False)
    is_text = F.is_valid_utf8(F.col("value").cast("string"))
    is_good = is_text
    if settings.decode == "json":
        is_good = is_text & F.try_parse_json(F.col("value").cast("string")).isNotNull()
    return F.col("value").isNotNull() & ~is_good


class Facts(NamedTuple):
    """Rows of two questions to each partition, by (topic, partition)."""

    totals: dict[tuple[str, int], Any]
    orders: dict[tuple[str, int], Any]


def partition_facts(frame: DataFrame, future_from_ms: int, checks: Sequence[Check] = ()) -> Facts:
    """Counts, percentiles and order of each partition that has records."""
    totals = _totals(frame, future_from_ms, checks).collect()
    orders = _orders(frame).collect()
    return Facts(
        {(row["topic"], row["partition"]): row for row in totals},
        {(row["topic"], row["partition"]): row for row in orders},
    )


def _totals(frame: DataFrame, future_from_ms: int, checks: Sequence[Check]) -> DataFrame:
    from pyspark.sql import functions as F

    is_future = F.col("ms") >= future_from_ms
    return frame.groupBy(*PARTITION).agg(
        F.count("*").alias("records"),
        F.min("offset").alias("first_offset"),
        F.max("offset").alias("last_offset"),
        F.sum("bytes").alias("bytes"),
        F.count_if("is_tombstone").alias("tombstones"),
        F.count_if(F.col("key").isNull()).alias("null_keys"),
        F.approx_count_distinct("key").alias("keys"),
        F.min("ms").alias("first_ms"),
        F.max("ms").alias("last_ms"),
        F.percentile_approx("bytes", list(PERCENTILES), ACCURACY).alias("sizes"),
        F.percentile_approx("latency", list(PERCENTILES), ACCURACY).alias("latencies"),
        F.count_if(F.col("number").isNull()).alias("unnumbered"),
        F.count_if(is_future).alias("future"),
        F.min(F.when(is_future, F.struct("offset", "ms"))).alias("future_sample"),
        F.count_if("is_poison").alias("poison"),
        F.min(F.when(F.col("is_poison"), F.col("offset"))).alias("poison_sample"),
        *aggregates(checks),
    )


def _orders(frame: DataFrame) -> DataFrame:
    """Timestamps that go backwards from one record to the next."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    before = F.lag("ms").over(Window.partitionBy(*PARTITION).orderBy("offset"))
    steps = frame.select(*PARTITION, (before - F.col("ms")).alias("back"))
    return steps.groupBy(*PARTITION).agg(
        F.count_if(F.col("back") > 0).alias("backwards"),
        F.coalesce(F.max("back"), F.lit(0)).alias("most"),
    )


def missing_ranges(frame: DataFrame, partitions: list[tuple[str, int]]) -> DataFrame:
    """Runs of offsets without a record, between two that have one, of some partitions.

    Columns: topic, partition, begin, until (not in the run).
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    names = [f"{topic}/{partition}" for topic, partition in partitions]
    here = F.concat_ws("/", "topic", F.col("partition").cast("string"))
    before = F.lag("offset").over(Window.partitionBy(*PARTITION).orderBy("offset"))
    steps = frame.where(here.isin(names)).select(
        *PARTITION, (before + 1).alias("begin"), F.col("offset").alias("until")
    )
    return steps.where("begin < until")

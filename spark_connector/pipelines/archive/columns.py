"""The columns of an archive."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITIONED_BY = ("topic", "date")

SCHEMA = (
    "partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, key BINARY,"
    " value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING, date DATE"
)
"""The columns of Spark's Kafka source, and the day (UTC) of the record's timestamp."""

COLUMNS = (
    *("partition", "offset", "timestamp", "timestampType", "key", "value", "headers"),
    *PARTITIONED_BY,
)


def archived_columns(records: DataFrame) -> DataFrame:
    """The columns of an archive, of a source's."""
    from pyspark.sql import functions

    days = functions.floor(functions.unix_millis("timestamp") / 86_400_000).cast("int")
    epoch = functions.lit("1970-01-01").cast("date")
    frame = records.withColumn("date", functions.date_add(epoch, days))
    return frame.select(*COLUMNS)

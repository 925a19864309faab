"""Records that were sent twice: of those with the same key, header or field, the first is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import SparkConnectorError
from ..record_fields import field_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PART = "__odradek_part"
TURN = "__odradek_turn"


def without_duplicates(batch: DataFrame, held: DataFrame, part: str, within: str) -> DataFrame:
    """A batch without what it has twice, and without what the table has.

    Args:
        batch: records.
        held: the table's.
        part: names what tells records of a topic apart, as in `record_fields`.
        within: an interval: so far apart from the batch's timestamps the table is looked through.

    Raises:
        SparkConnectorError: `within` is no interval.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    first = Window.partitionBy("topic", PART).orderBy("timestamp", "partition", "offset")
    marked = batch.withColumn(PART, field_text(part)).withColumn(TURN, F.row_number().over(first))
    once = marked.where(F.col(PART).isNull() | (F.col(TURN) == 1))
    reach = F.expr(f"INTERVAL '{within.replace(chr(39), '')}'")
    try:
        times = batch.agg(
            (F.min("timestamp") - reach).alias("since"), (F.max("timestamp") + reach).alias("until")
        )
        (row,) = times.collect()
    except PySparkException as error:
        if "INTERVAL" not in str(error).upper():
            raise
        raise SparkConnectorError(f"{within!r} is no interval; write it as in '1 day'") from None
    near = held.where(F.col("timestamp").between(F.lit(row["since"]), F.lit(row["until"])))
    known = near.select("topic", field_text(part).alias(PART)).where(F.col(PART).isNotNull())
    return once.join(known.distinct(), ["topic", PART], "left_anti").select(*batch.columns)

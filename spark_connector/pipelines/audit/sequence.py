"""Numbers of a sequence: which are missing, which are there twice, which came out of turn.

The numbers of a scope (a topic, a partition, a producer) are looked at in pieces of `PIECE`
numbers, so that one long sequence is the work of many tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from .report import SAMPLES_MAX, AuditFault, AuditSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PIECE = 100_000


def sequence_faults(frame: DataFrame, settings: AuditSettings) -> Iterator[AuditFault]:
    """What is wrong with the numbers of a frame that `narrow` made.

    Whether anything is takes two queries; only what is wrong takes more, to say where.
    """
    from pyspark.sql import functions as F

    numbered = frame.where("number IS NOT NULL")
    doubts = _doubts(numbered, settings)
    if not any(doubts):
        return
    places = (
        numbered.groupBy("topic", "partition", "scope", "number")
        .agg(
            F.count("*").alias("copies"),
            F.min("offset").alias("offset"),
            F.max("offset").alias("again"),
        )
        .persist()
    )
    try:
        numbers = places.groupBy("topic", "scope", "number").agg(
            F.sum("copies").alias("copies"),
            F.array_sort(F.collect_list(F.struct("partition", "offset", "again"))).alias("at"),
        )
        if doubts.copies:
            yield from _duplicated(numbers)
        if doubts.missing:
            yield from _lost(numbers.select("topic", "scope", "number"), settings)
        if doubts.back:
            yield from _swapped(places)
    finally:
        places.unpersist()


class _Doubts(NamedTuple):
    """How many of all numbers cannot be right."""

    copies: int
    missing: Decimal
    back: int
    """Steps to a lesser number. Copies are among them, if they did not follow at once."""


def _doubts(numbered: DataFrame, settings: AuditSettings) -> _Doubts:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    numbers = numbered.groupBy("topic", "scope", "number").agg(F.count("*").alias("copies"))
    scopes = numbers.groupBy("topic", "scope").agg(
        F.sum(F.col("copies") - 1).alias("copies"),
        F.count("*").alias("count"),
        F.min("number").alias("least"),
        F.max("number").alias("most"),
    )
    # Numbers may be as far apart as 64 bits allow, which is one more than fits into them.
    nothing, least, most = F.lit(0), *(F.col(n).cast("decimal(20, 0)") for n in ("least", "most"))
    missing = most - least + 1 - F.col("count")
    if settings.first_number is not None:
        missing = missing + F.greatest(least - settings.first_number, nothing)
    if settings.last_number is not None:
        missing = missing + F.greatest(F.lit(settings.last_number) - most, nothing)
    (sums,) = scopes.agg(
        F.coalesce(F.sum("copies"), nothing), F.coalesce(F.sum(missing), nothing)
    ).collect()
    order = Window.partitionBy("topic", "partition", "scope").orderBy("offset")
    steps = numbered.select("number", F.lag("number").over(order).alias("before"))
    return _Doubts(sums[0], sums[1], steps.where("number < before").count())


def _duplicated(numbers: DataFrame) -> Iterator[AuditFault]:
    from pyspark.sql import functions as F

    more = numbers.where("copies > 1")
    counts = more.groupBy("topic").agg(F.sum(F.col("copies") - 1).alias("count")).collect()
    for row in sorted(counts):
        samples = more.where(F.col("topic") == row["topic"]).orderBy("scope", "number")
        yield AuditFault(
            "duplicated",
            row["topic"],
            None,
            row["count"],
            tuple(_copies(sample) for sample in samples.limit(SAMPLES_MAX).collect()),
        )


def _copies(row: Any) -> str:
    places = []
    for at in row["at"]:
        places.append(f"{at['partition']}@{at['offset']}")
        if at["again"] != at["offset"]:
            places.append(f"{at['partition']}@{at['again']}")
    return f"number {row['number']}{_of(row['scope'])} at {', '.join(places[:SAMPLES_MAX])}"


def _of(scope: str) -> str:
    return f" of {scope}" if scope else ""


def _lost(numbers: DataFrame, settings: AuditSettings) -> Iterator[AuditFault]:
    """Runs of missing numbers: within a piece, between two pieces, and at the ends."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    in_pieces = numbers.withColumn("piece", F.floor(F.col("number") / PIECE))
    pieces = in_pieces.groupBy("topic", "scope", "piece").agg(
        F.min("number").alias("least"), F.max("number").alias("most"), F.count("*").alias("count")
    )
    by_scope = Window.partitionBy("topic", "scope").orderBy("piece")
    before = F.coalesce(F.lag("most").over(by_scope), F.lit(settings.first_number) - 1)
    with_before = pieces.select(
        "topic",
        "scope",
        "piece",
        (before + 1).alias("begin"),
        F.col("least").alias("until"),
        (F.col("most") - F.col("least") + 1 - F.col("count")).alias("inside"),
    ).persist()
    between = with_before.where("begin < until").select("topic", "scope", "begin", "until")
    holed = with_before.where("inside > 0").select("topic", "scope", "piece")
    previous = F.lag("number").over(Window.partitionBy("topic", "scope", "piece").orderBy("number"))
    inside = (
        in_pieces.join(holed, ["topic", "scope", "piece"], "left_semi")
        .select("topic", "scope", (previous + 1).alias("begin"), F.col("number").alias("until"))
        .where("begin < until")
    )
    runs = between.unionByName(inside)
    if settings.last_number is not None:
        ends = numbers.groupBy("topic", "scope").agg((F.max("number") + 1).alias("begin"))
        runs = runs.unionByName(
            ends.withColumn("until", F.lit(settings.last_number + 1)).where("begin < until")
        )
    counts = runs.groupBy("topic").agg(F.sum(F.col("until") - F.col("begin")).alias("count"))
    for row in sorted(counts.collect()):
        samples = runs.where(F.col("topic") == row["topic"]).orderBy("scope", "begin")
        yield AuditFault(
            "lost",
            row["topic"],
            None,
            row["count"],
            tuple(_run(sample) for sample in samples.limit(SAMPLES_MAX).collect()),
        )
    with_before.unpersist()


def _run(row: Any) -> str:
    begin, last = row["begin"], row["until"] - 1
    numbers = f"number {begin}" if begin == last else f"numbers {begin} to {last}"
    return f"{numbers}{_of(row['scope'])}"


def _swapped(places: DataFrame) -> Iterator[AuditFault]:
    """Numbers less than the one before them; a copy counts where its number first stands."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    order = Window.partitionBy("topic", "partition", "scope").orderBy("offset")
    steps = places.select(
        "topic", "partition", "scope", "offset", "number", F.lag("number").over(order).alias("last")
    )
    # Where copies were sent again later, what follows the copy is compared with what led to it.
    back = steps.where("number < last").persist()
    counts = back.groupBy("topic", "partition").count().collect()
    for row in sorted(counts):
        here = (F.col("topic") == row["topic"]) & (F.col("partition") == row["partition"])
        samples = back.where(here).orderBy("offset").limit(SAMPLES_MAX).collect()
        yield AuditFault(
            "swapped",
            row["topic"],
            row["partition"],
            row["count"],
            tuple(
                f"number {each['number']}{_of(each['scope'])} at {each['partition']}@"
                f"{each['offset']} comes after {each['last']}"
                for each in samples
            ),
        )
    back.unpersist()

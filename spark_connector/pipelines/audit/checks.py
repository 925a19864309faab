"""Expectations as columns and queries of Spark.

What a record says by itself (nulls, ranges, times) is a column of the table that an audit makes
anyway, and is counted by the query that it makes anyway, whatever the number of expectations. Only
values that must be compared with others (unique, referential) take a query more, one for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from ....common.nearest import did_you_mean
from ...errors import SparkConnectorError
from ..progress import first_line
from ..record_fields import field_text, require_field
from ..topic_source import TopicSource
from .expectations import Expectation, bound_family
from .results import Measured

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

SHOWN_CHARACTERS = 60
RECORD_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

_FAMILIES = {
    "string": "text",
    "binary": "text",
    "boolean": "boolean",
    "timestamp": "time",
    "timestamp_ntz": "time",
    "date": "day",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double"), "number"),
}
_CASTS = {"number": "double", "time": "timestamp", "day": "date"}
"""What text is read as to be compared with a bound of a family."""


class Check(NamedTuple):
    """An expectation on the table that `narrow` makes."""

    expectation: Expectation
    place: int
    value: Column | None
    """Its column there, null in records that it does not look at; None: it needs none."""

    @property
    def column(self) -> str:
        """The column's name."""
        return f"check_{self.place}"

    def concerns(self, topic: str) -> bool:
        """Whether it is about a topic."""
        return self.expectation.topic in (None, topic)


def checks_of(
    records: DataFrame, expectations: Sequence[Expectation], topics: Sequence[str]
) -> tuple[Check, ...]:
    """The expectations, fitted to the columns that records have.

    Args:
        records: with the columns of a source, decoded or not.
        expectations: of a file.
        topics: that the audit looks at.

    Raises:
        SparkConnectorError: there is no such topic or column, or it has not the type for that.
    """
    checks = []
    for place, expectation in enumerate(expectations):
        topic = expectation.topic
        if topic is not None and topic not in topics:
            raise SparkConnectorError(
                f"expectation {expectation.name!r} is about the topic {topic!r}, which is not"
                f" audited{did_you_mean(topic, topics)}"
            )
        checks.append(Check(expectation, place, _value(records, expectation)))
    return tuple(checks)


def _value(records: DataFrame, expectation: Expectation) -> Column | None:
    from pyspark.sql import functions as F

    if expectation.kind == "volume":
        return None
    names = expectation.columns or ("timestamp",)
    found = [_Found.of(records, name, expectation) for name in names]
    value = _VALUES[expectation.kind](found, expectation)
    if expectation.topic is not None:
        value = F.when(F.col("topic") == expectation.topic, value)
    return value


class _Found(NamedTuple):
    """A column by its name in an expectation."""

    name: str
    column: Column
    family: str
    """`text`, `number`, `time`, `day`, `boolean`, or Spark's name of another type."""
    is_of_value: bool
    """Whether it is a part of the record's value."""

    @classmethod
    def of(cls, records: DataFrame, name: str, expectation: Expectation) -> _Found:
        from pyspark.sql import functions as F

        if ":" in name:
            return cls(require_field(name), field_text(name), "text", name.startswith("field:"))
        kind = _type_of(records, name, expectation)
        family = _FAMILIES.get(kind.simpleString(), kind.simpleString())
        if family.startswith("decimal"):
            family = "number"
        path = ".".join(f"`{part}`" for part in name.split("."))
        return cls(name, F.col(path), family, name.partition(".")[0] not in RECORD_COLUMNS)

    def text(self) -> Column:
        return self.column.cast("string")

    def as_family(self, family: str, expectation: Expectation) -> Column:
        """To be compared with what is of a family; text that is no such thing is null.

        Raises:
            SparkConnectorError: it cannot be.
        """
        if self.family == "text":
            return self.text().try_cast(_CASTS[family]) if family in _CASTS else self.text()
        if self.family == family:
            return self.column
        if {self.family, family} == {"day", "time"}:
            return self.column.cast(_CASTS[family])
        raise SparkConnectorError(
            f"expectation {expectation.name!r} compares {self.name}, a column of {self.family},"
            f" with a {family}"
        )


def _type_of(records: DataFrame, name: str, expectation: Expectation) -> DataType:
    """The type of a column or of a field in it, by a name with dots."""
    from pyspark.sql.types import StructType

    kind: DataType = records.schema
    passed: list[str] = []
    for part in name.split("."):
        inner = kind.fields if isinstance(kind, StructType) else []
        fields = {each.name: each.dataType for each in inner}
        if part not in fields:
            legal = [".".join([*passed, each]) for each in fields]
            hint = did_you_mean(name, legal)
            if not hint and not passed:
                hint = (
                    f"; it has {', '.join(fields)}, header:NAME and field:NAME, and with a schema"
                    " (--registry, --schema) also decoded.NAME"
                )
            elif not hint:
                hint = f"; {'.'.join(passed)} has {', '.join(fields) or 'no fields'}"
            raise SparkConnectorError(
                f"expectation {expectation.name!r} is about the column {name!r}, which records"
                f" do not have{hint}"
            )
        kind = fields[part]
        passed.append(part)
    return kind


# --- What a record says by itself --------------------------------------------------------------


def _not_null(found: list[_Found], expectation: Expectation) -> Column:
    from pyspark.sql import functions as F

    (one,) = found
    failure = F.struct(one.column.isNull().alias("fails"), F.lit("").alias("shown"))
    # A tombstone has no parts, and lacks none.
    return F.when(F.col("value").isNotNull(), failure) if one.is_of_value else failure


def _range(found: list[_Found], expectation: Expectation) -> Column:
    from pyspark.sql import functions as F

    (one,) = found
    bounds = [each for each in (expectation.least, expectation.most) if each is not None]
    value = one.as_family(bound_family(bounds[0]), expectation)
    fails = value.isNull()
    if expectation.least is not None:
        fails = fails | (value < F.lit(expectation.least))
    if expectation.most is not None:
        fails = fails | (value > F.lit(expectation.most))
    if bound_family(bounds[0]) == "number":
        fails = fails | F.isnan(value.cast("double"))
    failure = F.struct(fails.alias("fails"), F.when(fails, _shown(one.text())).alias("shown"))
    return F.when(one.column.isNotNull(), failure)


def _newest(found: list[_Found], expectation: Expectation) -> Column:
    from pyspark.sql import functions as F

    (one,) = found
    if one.family == "number":
        return one.column.cast("bigint")
    if one.family == "text":
        as_ms = one.text().try_cast("bigint")
        return F.coalesce(as_ms, F.unix_millis(one.text().try_cast("timestamp")))
    return F.unix_millis(one.as_family("time", expectation).cast("timestamp"))


def _compared(found: list[_Found], expectation: Expectation) -> Column:
    from pyspark.sql import functions as F

    for each in found:
        if each.family not in (*_FAMILIES.values(), "number"):
            raise SparkConnectorError(
                f"expectation {expectation.name!r} compares {each.name}, a column of {each.family},"
                " as a whole; name a field of it"
            )
    if expectation.kind == "referential":
        return found[0].text()
    is_there = reduce(lambda left, right: left & right, [each.column.isNotNull() for each in found])
    values = [each.column.alias(f"part_{place}") for place, each in enumerate(found)]
    return F.when(is_there, F.struct(*values))


_VALUES = {
    "not_null": _not_null,
    "range": _range,
    "freshness": _newest,
    "unique": _compared,
    "referential": _compared,
}


def _shown(text: Column) -> Column:
    from pyspark.sql import functions as F

    return F.substring(text, 1, SHOWN_CHARACTERS)


def aggregates(checks: Sequence[Check]) -> list[Column]:
    """What is counted of each partition, in the query that counts its records."""
    from pyspark.sql import functions as F

    found = []
    for check in checks:
        if check.value is None:
            continue
        column, kind = F.col(check.column), check.expectation.kind
        if kind == "freshness":
            found.append(F.max(column).alias(f"{check.column}_newest"))
            continue
        found.append(F.count_if(column.isNotNull()).alias(f"{check.column}_checked"))
        if kind in ("not_null", "range"):
            fails = F.coalesce(column["fails"], F.lit(False))
            sample = F.struct("offset", column["shown"].alias("shown"))
            found += [
                F.count_if(fails).alias(f"{check.column}_failed"),
                F.min(F.when(fails, sample)).alias(f"{check.column}_sample"),
            ]
    return found


def measured(
    frame: DataFrame,
    checks: Sequence[Check],
    totals: Mapping[tuple[str, int], Any],
    topics: Sequence[str],
    source: TopicSource,
) -> dict[tuple[int, str], Measured]:
    """What was found for each check, by its place and a topic that it concerns.

    Args:
        frame: that `narrow` made.
        checks: of its columns.
        totals: rows with `aggregates`, by topic and partition.
        topics: that the audit looks at.
        source: whose cluster has the topics of references.
    """
    apart = _compared_with_others(frame, checks, source)
    found = {}
    for check in checks:
        for topic in filter(check.concerns, topics):
            rows = [(where[1], row) for where, row in sorted(totals.items()) if where[0] == topic]
            found[check.place, topic] = apart.get((check.place, topic), Measured(0))._replace(
                **_counted(check, rows)
            )
    return found


def _counted(check: Check, rows: list[tuple[int, Any]]) -> dict[str, Any]:
    """What the partitions of a topic have together."""
    name, kind = check.column, check.expectation.kind
    if kind == "volume":
        return {"checked": sum(row["records"] for _, row in rows)}
    if kind == "freshness":
        times = [row[f"{name}_newest"] for _, row in rows if row[f"{name}_newest"] is not None]
        return {
            "checked": sum(row["records"] for _, row in rows),
            "newest_ms": max(times, default=None),
        }
    counted: dict[str, Any] = {"checked": sum(row[f"{name}_checked"] for _, row in rows)}
    if kind in ("not_null", "range"):
        samples = [
            _sample(partition, row[f"{name}_sample"])
            for partition, row in rows
            if row[f"{name}_sample"] is not None
        ]
        counted["failed"] = sum(row[f"{name}_failed"] for _, row in rows)
        counted["sample"] = samples[0] if samples else ""
    return counted


def _sample(partition: int, sample: Any) -> str:
    shown = f" has {sample['shown']!r}" if sample["shown"] else ""
    return f"{partition}@{sample['offset']}{shown}"


# --- Values that are compared with others ------------------------------------------------------


def _compared_with_others(
    frame: DataFrame, checks: Sequence[Check], source: TopicSource
) -> dict[tuple[int, str], Measured]:
    from pyspark.sql import functions as F

    queries = []
    for check in checks:
        if check.expectation.kind not in ("unique", "referential"):
            continue
        values = (
            frame.where(F.col(check.column).isNotNull())
            .groupBy("topic", F.col(check.column).alias("value"))
            .agg(F.count("*").alias("count"), F.min(F.struct("partition", "offset")).alias("at"))
        )
        if check.expectation.kind == "unique":
            wrong, failed = values.where("count > 1"), F.sum(F.col("count") - 1)
        else:
            known = _referenced(frame.sparkSession, check.expectation, source)
            wrong, failed = values.join(known, "value", "left_anti"), F.sum("count")
        shown = F.struct("count", _shown(F.col("value").cast("string")).alias("shown"), "at")
        by_topic = wrong.groupBy("topic").agg(failed.alias("failed"), F.max(shown).alias("most"))
        queries.append(by_topic.select(F.lit(check.place).alias("place"), "*"))
    if not queries:
        return {}
    rows = reduce(lambda left, right: left.unionByName(right), queries).collect()
    return {
        (row["place"], row["topic"]): Measured(0, row["failed"], None, _commonest(row["most"]))
        for row in rows
    }


def _commonest(most: Any) -> str:
    times = "once" if most["count"] == 1 else f"{most['count']:,} times"
    at = most["at"]
    return f"{most['shown']!r} is there {times}, first at {at['partition']}@{at['offset']}"


def _referenced(spark: SparkSession, expectation: Expectation, source: TopicSource) -> DataFrame:
    """The values that a reference has, as text."""
    from pyspark.errors import PySparkException

    reference = expectation.references
    assert reference is not None
    if reference.parquet is not None:
        try:
            table = spark.read.parquet(reference.parquet)
        except PySparkException as error:
            raise SparkConnectorError(
                f"expectation {expectation.name!r} refers to {reference.parquet}, which cannot be"
                f" read: {first_line(error)}"
            ) from error
    else:
        topic = source._replace(topics=(str(reference.topic),), pattern=None)
        topic.cluster().partitions()  # says in a sentence that there is none
        # A key that was deleted is none any more, as far as its tombstone says.
        table = topic.read(spark).where("value IS NOT NULL")
    text = _Found.of(table, reference.column, expectation).text()
    return table.select(text.alias("value")).where("value IS NOT NULL").distinct()

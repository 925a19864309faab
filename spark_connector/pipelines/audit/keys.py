"""Keys that are where they should not be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...worker_imports import forget_zip_importers
from ..partitioners import PARTITIONERS
from .report import SAMPLES_MAX, AuditFault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEY_BYTES_SHOWN = 40


def key_faults(
    frame: DataFrame, partitioner: str, partition_counts: Mapping[str, int]
) -> Iterator[AuditFault]:
    """Keys in wrong partitions, by topic.

    Args:
        frame: that `narrow` made.
        partitioner: one of `AuditSettings.partitioner`.
        partition_counts: of each topic.
    """
    if partitioner == "none":
        return
    from pyspark.sql import functions as F

    places = (
        frame.where("key IS NOT NULL")
        .groupBy("topic", "key", "partition")
        .agg(F.count("*").alias("count"), F.min("offset").alias("offset"))
    )
    if partitioner == "any":
        wrong = (
            places.groupBy("topic", "key")
            .agg(F.array_sort(F.collect_list(F.struct("count", "partition", "offset"))).alias("at"))
            .where("size(at) > 1")
        )
    else:
        wrong = _not_as_computed(places, partitioner, partition_counts)
    wrong = wrong.persist()
    for row in sorted(wrong.groupBy("topic").count().collect()):
        samples = wrong.where(F.col("topic") == row["topic"]).orderBy("key").limit(SAMPLES_MAX)
        yield AuditFault(
            "key moved",
            row["topic"],
            None,
            row["count"],
            tuple(_sample(each) for each in samples.collect()),
        )
    wrong.unpersist()


def _not_as_computed(
    places: DataFrame, partitioner: str, partition_counts: Mapping[str, int]
) -> DataFrame:
    from pyspark.sql import functions as F

    counts = dict(partition_counts)

    def expected(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        forget_zip_importers()
        compute = PARTITIONERS[partitioner]
        for batch in batches:
            topics, keys = batch.column("topic").to_pylist(), batch.column("key").to_pylist()
            expected = [
                compute(key, counts[topic]) for topic, key in zip(topics, keys, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, pa.array(expected, pa.int32())], [*batch.schema.names, "expected"]
            )

    ddl = "topic STRING, key BINARY, partition INT, count BIGINT, offset BIGINT, expected INT"
    return (
        places.mapInArrow(expected, ddl)
        .where("partition != expected")
        .groupBy("topic", "key", "expected")
        .agg(F.array_sort(F.collect_list(F.struct("count", "partition", "offset"))).alias("at"))
    )


def _sample(row: Any) -> str:
    key = bytes(row["key"])
    shown = repr(key[:KEY_BYTES_SHOWN])[1:] + ("..." if len(key) > KEY_BYTES_SHOWN else "")
    places = ", ".join(
        f"{each['count']:,} in partition {each['partition']} from offset {each['offset']}"
        for each in row["at"]
    )
    belongs = f" (it belongs in {row['expected']})" if "expected" in row else ""
    return f"key {shown}: {places}{belongs}"

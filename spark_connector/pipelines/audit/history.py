"""The history of expectations: a table to which each audit appends what became of them.

A folder of Parquet gets one file for each run, which is written aside and then renamed; a table of
Iceberg gets a snapshot. Either way a run is there whole or not at all, runs at the same time do not
hinder each other, and whatever reads Parquet or Iceberg can read all runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import SparkConnectorError
from ..archive.iceberg import CATALOG, use_catalog
from ..archive.settings import TableLocation
from ..progress import first_line
from .results import TREND_RUNS_MAX, ExpectationResult, TrendPoint

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

FORMATS = ("parquet", "iceberg")
TABLE = f"{CATALOG}.audits.history"

SCHEMA = (
    "run_id STRING, at TIMESTAMP, cluster STRING, expectation STRING, kind STRING, topic STRING,"
    " columns STRING, severity STRING, checked BIGINT, failed BIGINT, observed DOUBLE,"
    " verdict STRING, sentence STRING, sample STRING"
)
"""A row for each expectation and topic of a run."""


class HistorySettings(NamedTuple):
    """Where a history is. One is for one cluster: it knows expectations by name and topic."""

    folder: str
    """A path, or a URI that Spark knows."""
    table_format: str = "parquet"
    """`parquet`; or `iceberg`: the table `audits.history` of a Hadoop catalog in the folder."""

    def check(self) -> HistorySettings:
        """The settings, if they make sense.

        Raises:
            SparkConnectorError: they do not.
        """
        if self.table_format not in FORMATS:
            raise SparkConnectorError(
                f"there is no history in {self.table_format!r}; it is parquet or iceberg"
            )
        return self


class AuditHistory:
    """The table.

    Args:
        session: that reads and writes it.
        settings: where it is.

    Raises:
        SparkConnectorError: the session has no Iceberg, and that is needed.
    """

    def __init__(self, session: SparkSession, settings: HistorySettings) -> None:
        self._session = session
        self._folder = settings.folder
        self._is_iceberg = settings.table_format == "iceberg"
        if self._is_iceberg:
            use_catalog(session, TableLocation(settings.folder))

    def trends(self, names: Sequence[str]) -> dict[tuple[str, str], tuple[TrendPoint, ...]]:
        """The last runs of expectations, the oldest first, by name and topic.

        Raises:
            SparkConnectorError: the table cannot be read.
        """
        from pyspark.errors import PySparkException
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        try:
            table = self._table()
            if table is None:
                return {}
            newest = Window.partitionBy("expectation", "topic").orderBy(F.desc("at"))
            rows = (
                table.where(F.col("expectation").isin(list(names)))
                .withColumn("place", F.row_number().over(newest))
                .where(F.col("place") < TREND_RUNS_MAX)
                .select(
                    "expectation",
                    "topic",
                    F.unix_millis("at").alias("at_ms"),
                    "observed",
                    "verdict",
                )
                .collect()
            )
        except PySparkException as error:
            raise SparkConnectorError(
                f"the history in {self._folder} cannot be read: {first_line(error)}"
            ) from error
        found: dict[tuple[str, str], list[TrendPoint]] = {}
        for row in sorted(rows, key=lambda row: row["at_ms"]):
            point = TrendPoint(row["at_ms"], row["observed"], row["verdict"])
            found.setdefault((row["expectation"], row["topic"]), []).append(point)
        return {where: tuple(points) for where, points in found.items()}

    def append(
        self, run_id: str, at_ms: int, cluster: str, results: Sequence[ExpectationResult]
    ) -> None:
        """Add a run, all of it or nothing.

        Raises:
            SparkConnectorError: it cannot be written.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        rows = _rows(run_id, at_ms, cluster, results)
        try:
            if self._is_iceberg:
                self._session.sql(f"CREATE TABLE IF NOT EXISTS {TABLE} ({SCHEMA}) USING iceberg")
                self._session.createDataFrame(rows).writeTo(TABLE).append()
            else:
                self._add_file(f"run-{at_ms}-{run_id}.parquet", rows)
        except (PySparkException, Py4JError) as error:
            raise SparkConnectorError(
                f"the history in {self._folder} cannot be written: {first_line(error)}"
            ) from error

    def _table(self) -> DataFrame | None:
        """None: there is none yet."""
        if self._is_iceberg:
            return self._session.table(TABLE) if self._session.catalog.tableExists(TABLE) else None
        path = self._path(self._folder)
        if not path.getFileSystem(self._hadoop_conf).exists(path):
            return None
        return self._session.read.schema(SCHEMA).parquet(self._folder)

    def _add_file(self, name: str, rows: pa.Table) -> None:
        """By Hadoop's file systems, which know each URI that Spark does."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        data = pa.BufferOutputStream()
        pq.write_table(rows, data)
        # Readers pass over names that begin so.
        aside = self._path(f"{self._folder}/.{name}.writing")
        files = aside.getFileSystem(self._hadoop_conf)
        try:
            stream = files.create(aside, False)
            try:
                stream.write(bytearray(data.getvalue()))
                stream.hsync()
            finally:
                stream.close()
            if not files.rename(aside, self._path(f"{self._folder}/{name}")):
                raise SparkConnectorError(f"the history in {self._folder} takes no new file")
        finally:
            files.delete(aside, False)

    def _path(self, place: str) -> Any:
        return self._session._jvm.org.apache.hadoop.fs.Path(place)  # type: ignore[union-attr]  # py4j

    @property
    def _hadoop_conf(self) -> Any:
        return self._session._jsc.hadoopConfiguration()


def _rows(run_id: str, at_ms: int, cluster: str, results: Sequence[ExpectationResult]) -> pa.Table:
    import pyarrow as pa

    whole, text = pa.int64(), pa.string()
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    columns = {
        "run_id": ([run_id] * len(results), text),
        "at": ([at] * len(results), pa.timestamp("us", "UTC")),
        "cluster": ([cluster] * len(results), text),
        "expectation": ([each.expectation for each in results], text),
        "kind": ([each.kind for each in results], text),
        "topic": ([each.topic for each in results], text),
        "columns": ([", ".join(each.columns) for each in results], text),
        "severity": ([each.severity for each in results], text),
        "checked": ([each.checked for each in results], whole),
        "failed": ([each.failed for each in results], whole),
        "observed": ([each.observed for each in results], pa.float64()),
        "verdict": ([each.verdict for each in results], text),
        "sentence": ([each.sentence for each in results], text),
        "sample": ([each.sample for each in results], text),
    }
    return pa.table({name: pa.array(values, kind) for name, (values, kind) in columns.items()})

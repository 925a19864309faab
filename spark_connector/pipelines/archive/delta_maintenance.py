"""A table of Delta kept in order: small files into large ones, and unneeded files removed.

Delta itself removes entries of its log, by the table's `delta.logRetentionDuration`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...decoding.column_types import quoted
from ..progress import StepClock, with_jobs_watched
from .delta import POSITION, DeltaTable
from .position import ArchivePosition
from .settings import MaintainSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOURS_PER_DAY = 24
SMALL = 0.75
"""Of the target."""
PARTITIONS_PER_COMMIT = 8
LISTED_MAX = 1_000
"""So many files Delta names in a dry run."""
VACUUM_END = "VACUUM END"


class _SmallFiles(NamedTuple):
    """Of a partition."""

    values: tuple[str | None, ...]
    """Of its columns, as the log has them."""
    files: int
    records: int


class DeltaMaintenance:
    """The steps for a table.

    Args:
        session: with Delta.
        settings: of the maintenance.

    Raises:
        SparkConnectorError: there is no such table.
    """

    def __init__(self, session: SparkSession, settings: MaintainSettings) -> None:
        self._session = session
        self._settings = settings
        self.table = DeltaTable(session, settings.location)
        self.table.read()
        small = int(SMALL * settings.target_bytes)
        for name, value in {
            "optimize.minFileSize": str(small),
            "optimize.maxFileSize": str(settings.target_bytes),
            # Delta's own check knows nothing of ours: never less than a day.
            "retentionDurationCheck.enabled": "false",
        }.items():
            session.conf.set(f"spark.databricks.delta.{name}", value)

    def steps(self) -> dict[str, Callable[[StepClock], str]]:
        """By name and in turn; each does its work, and says what became of it."""
        return {"compacting": self._compact, "removing old files": self._vacuum}

    def _compact(self, clock: StepClock) -> str:
        columns = self.table.partition_columns()
        small = self._small_files(columns)
        files, records = sum(each.files for each in small), sum(each.records for each in small)
        if self._settings.only_plans or not small:
            clock.tell(0, None)
            return f"{files:,} small files of {records:,} records in {len(small):,} partitions"

        def compact() -> tuple[int, int]:
            removed = added = 0
            for place in range(0, len(small), PARTITIONS_PER_COMMIT):
                group = small[place : place + PARTITIONS_PER_COMMIT]
                where = _predicate(columns, [each.values for each in group])
                done = self._sql(f"OPTIMIZE {self.table.name} {where}")[0]["metrics"]
                removed += done["numFilesRemoved"]
                added += done["numFilesAdded"]
            return removed, added

        removed, added = with_jobs_watched(self._session, compact, records, clock)
        return f"{removed:,} files into {added:,}"

    def _small_files(self, columns: Sequence[str]) -> list[_SmallFiles]:
        """Partitions with small files enough."""
        from pyspark.sql import DataFrame
        from pyspark.sql import functions as F

        files: Any = DataFrame(self.table.snapshot().allFiles().toDF(), self._session)
        values = [F.col("partitionValues")[column].alias(column) for column in columns]
        rows = (
            files.where(F.col("size") < int(SMALL * self._settings.target_bytes))
            .groupBy(*values)
            .agg(
                F.count("*").alias("__files"),
                F.sum(F.get_json_object("stats", "$.numRecords").cast("long")).alias("__records"),
            )
            .where(F.col("__files") >= self._settings.files_min)
            .collect()
        )
        found = [
            _SmallFiles(tuple(row[:-2]), row["__files"], row["__records"] or 0) for row in rows
        ]
        return sorted(found, key=lambda each: [value or "" for value in each.values])

    def _vacuum(self, clock: StepClock) -> str:
        clock.tell(0, None)
        days = max(self._settings.keep_days, self._settings.orphan_days)
        vacuum = f"VACUUM {self.table.name} RETAIN {days * HOURS_PER_DAY:f} HOURS"
        if self._settings.only_plans:
            count = len(self._sql(f"{vacuum} DRY RUN"))
            return f"{'at least ' if count >= LISTED_MAX else ''}{count:,} files"
        self._sql(vacuum)
        metrics = next(
            (each.metrics for each in self.table.commits() if each.operation == VACUUM_END), {}
        )
        self._carry_position()
        return f"{int(metrics.get('numDeletedFiles') or 0):,} files"

    def _carry_position(self) -> None:
        """Have the newest commit say how far the archive is: Delta forgets old ones."""
        state = self.table.state()
        (newest,) = self.table.commits(1)
        if state.position is not None and not (newest.metadata or "").startswith(POSITION):
            position = ArchivePosition(uuid.uuid4().hex, state.position.offsets)
            self.table.append(self.table.read().limit(0), position, state.predecessor, False)

    def _sql(self, statement: str) -> Any:
        return self._session.sql(statement).collect()


def _predicate(columns: Sequence[str], partitions: Sequence[Sequence[str | None]]) -> str:
    """What restricts OPTIMIZE to some partitions."""
    if not columns:
        return ""
    return "WHERE " + " OR ".join(
        "("
        + " AND ".join(
            f"{quoted(column)} IS NULL"
            if value is None
            else f"{quoted(column)} = '{_escaped(value)}'"
            for column, value in zip(columns, values, strict=True)
        )
        + ")"
        for values in partitions
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")

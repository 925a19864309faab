"""A table of Iceberg kept in order: small files into large ones, and what is old removed.

Each step commits by itself, and the first one by groups of files.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import SparkConnectorError
from ..progress import StepClock, with_jobs_watched
from .iceberg import CATALOG, IcebergTable
from .position import ArchivePosition
from .settings import MaintainSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_S = 24 * 60 * 60
SMALL = 0.75
"""Of the target; what Iceberg takes for a file that is too small."""


class _SmallFiles(NamedTuple):
    """Files that are to be put together, and how many partitions and records they are of."""

    partitions: int
    files: int
    records: int


class IcebergMaintenance:
    """The steps for a table.

    Args:
        session: with Iceberg.
        settings: of the maintenance.

    Raises:
        SparkConnectorError: there is no such table.
    """

    def __init__(self, session: SparkSession, settings: MaintainSettings) -> None:
        self._session = session
        self._settings = settings
        self.table = IcebergTable(session, settings.location)
        self.table.read()
        self._name = f"{CATALOG}.{settings.location.table}"

    def steps(self) -> dict[str, Callable[[StepClock], str]]:
        """By name and in turn; each does its work, and says what became of it."""
        return {
            "compacting": self._compact,
            "rewriting manifests": self._rewrite_manifests,
            "expiring snapshots": self._expire,
            "removing orphaned files": self._remove_orphans,
        }

    def _compact(self, clock: StepClock) -> str:
        small = self._small_files()
        if self._settings.only_plans or not small.files:
            return (
                f"{small.files:,} small files of {small.records:,} records in"
                f" {small.partitions:,} partitions"
            )
        rewritten = added = 0
        # Groups are committed side by side. Where one fails the others, or another writer does,
        # Iceberg only writes that into Spark's log: who looks again finds what is left.
        before = small.files + 1
        while 0 < small.files < before:
            done = self._rewrite_data_files(small.records, clock)
            rewritten += done["rewritten_data_files_count"]
            added += done["added_data_files_count"]
            before, small = small.files, self._small_files()
        outcome = f"{rewritten:,} files into {added:,}"
        if small.files:
            outcome += f"; {small.files:,} small ones are left: Spark's log says why"
        return outcome

    def _small_files(self) -> _SmallFiles:
        """Those that are to be put together."""
        found = self._sql(
            f"""SELECT count(*) AS partitions, sum(files) AS files, sum(records) AS records FROM (
              SELECT partition, count(*) AS files, sum(record_count) AS records
              FROM {self._name}.files
              WHERE content = 0 AND file_size_in_bytes < {int(SMALL * self._settings.target_bytes)}
              GROUP BY partition HAVING count(*) >= {self._settings.files_min})"""
        )
        return _SmallFiles(found["partitions"], found["files"] or 0, found["records"] or 0)

    def _rewrite_data_files(self, records: int, clock: StepClock) -> Any:
        options = {
            "target-file-size-bytes": self._settings.target_bytes,
            "min-input-files": self._settings.files_min,
            # Groups that are done stay done if the run is killed.
            "partial-progress.enabled": "true",
        }
        listed = ", ".join(f"'{name}', '{value}'" for name, value in options.items())
        done = with_jobs_watched(
            self._session,
            lambda: self._call("rewrite_data_files", f"options => map({listed})"),
            records,
            clock,
        )
        if done["failed_data_files_count"]:
            raise SparkConnectorError(
                f"{done['failed_data_files_count']:,} files could not be put together: see Spark's"
                " log; the others are done"
            )
        return done

    def _rewrite_manifests(self, clock: StepClock) -> str:
        clock.tell(0, None)
        if self._settings.only_plans:
            found = self._sql(f"SELECT count(*) AS manifests FROM {self._name}.manifests")
            return f"{found['manifests']:,} manifests"
        done = self._call("rewrite_manifests")
        return f"{done['rewritten_manifests_count']:,} into {done['added_manifests_count']:,}"

    def _expire(self, clock: StepClock) -> str:
        clock.tell(0, None)
        before = _timestamp(self._settings.keep_days)
        if self._settings.only_plans:
            found = self._sql(
                f"SELECT count(*) AS old FROM {self._name}.snapshots WHERE committed_at < {before}"
            )
            return f"{found['old']:,} snapshots from before {before}"
        self._carry_position()
        count = f"SELECT count(*) AS snapshots FROM {self._name}.snapshots"
        was = self._sql(count)["snapshots"]
        done = self._call("expire_snapshots", f"older_than => {before}, retain_last => 1")
        return (
            f"{was - self._sql(count)['snapshots']:,} snapshots,"
            f" {done['deleted_data_files_count']:,} data files"
        )

    def _carry_position(self) -> None:
        """Have the newest snapshot say how far the archive is: those that did may now expire."""
        state = self.table.state()
        current = self._sql(
            f"SELECT max_by(snapshot_id, made_current_at) AS id FROM {self._name}.history"
        )["id"]
        if state.position is not None and state.predecessor != str(current):
            position = ArchivePosition(uuid.uuid4().hex, state.position.offsets)
            self.table.append(self.table.read().limit(0), position, state.predecessor, False)

    def _remove_orphans(self, clock: StepClock) -> str:
        clock.tell(0, None)
        before = _timestamp(self._settings.orphan_days)
        only = str(self._settings.only_plans).lower()
        arguments = f"older_than => {before}, dry_run => {only}"
        rows = self._session.sql(self._statement("remove_orphan_files", arguments)).collect()
        return f"{len(rows):,} files"

    def _call(self, procedure: str, arguments: str = "") -> Any:
        return self._sql(self._statement(procedure, arguments))

    def _statement(self, procedure: str, arguments: str) -> str:
        table = f"table => '{self._settings.location.table}'"
        listed = ", ".join(each for each in (table, arguments) if each)
        return f"CALL {CATALOG}.system.{procedure}({listed})"

    def _sql(self, statement: str) -> Any:
        (row,) = self._session.sql(statement).collect()
        return row


def _timestamp(days_ago: float) -> str:
    moment = datetime.fromtimestamp(time.time() - days_ago * DAY_S, UTC)
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"

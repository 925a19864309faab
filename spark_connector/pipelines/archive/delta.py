"""An archive as a table of Delta: a folder, and the log of its commits in it.

Each batch is a transaction of one application (`txnAppId`), with the number behind the last one's
(`txnVersion`). Delta commits a number once: of two runs at one position the slower one is refused,
or writes nothing. The position is in the commit's `userMetadata`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import SparkConnectorError
from ...installation import SparkInstallation
from .failures import failures_reported
from .files import local_path
from .position import ArchivePosition
from .settings import TableLocation
from .table import TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG_CLASS = "org.apache.spark.sql.delta.catalog.DeltaCatalog"

PACKAGES = {"4.0": "io.delta:delta-spark_{scala}:4.0.0"}
"""By the series of Spark. One that is built for 4.0.1 does not run on 4.0.0."""
NEWER_PACKAGE = "io.delta:delta-spark_{series}_{scala}:4.1.0"
"""Since 4.1 the artifact's name says which Spark it is for."""

APPLICATION = "odradek-archive"
"""Of the transactions."""
POSITION = "odradek.archive:"
"""In front of an `ArchivePosition` in a commit's metadata."""
RESTORE = "RESTORE"

COMMITS_AT_ONCE = 20
"""So many commits are looked through for a position at first."""
CONFLICTS = "io.delta.exceptions."
"""The package of what Delta raises where another writer was quicker."""

SETTINGS = {
    "spark.sql.catalog.spark_catalog": CATALOG_CLASS,
    # By default 50 tasks read a log of a few commits, and 10,000 list a few folders.
    "spark.databricks.delta.snapshotPartitions": "8",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
    "spark.sql.maxConcurrentOutputFileWriters": "16",
}
"""Of a session that uses such a table."""

_COLUMN = re.compile(r"\w+")
_BYTES = ("key", "value", "headers")
_WIDENING = re.compile(r"ALTER COLUMN .* TYPE .*")


def delta_packages(installation: SparkInstallation) -> list[str]:
    """The Maven coordinates of Delta for a Spark, to be given to `spark_session` as well."""
    series = ".".join(installation.spark_version.split(".")[:2])
    package = PACKAGES.get(series, NEWER_PACKAGE)
    return [package.format(series=series, scala=installation.scala_version)]


def delta_conf() -> dict[str, str]:
    """The configuration that a session must be started with."""
    return {"spark.sql.extensions": EXTENSION}


class Commit(NamedTuple):
    """What the log says of one."""

    version: int
    operation: str
    parameters: Mapping[str, str | None]
    metrics: Mapping[str, str]
    metadata: str | None
    """Of its writer."""


class DeltaTable:
    """A table in a folder.

    Args:
        session: with Delta.
        location: of the table; it has no catalog.

    Raises:
        SparkConnectorError: the session has no Delta.
    """

    def __init__(self, session: SparkSession, location: TableLocation) -> None:
        require_delta(session)
        for name, value in SETTINGS.items():
            session.conf.set(name, value)
        self._session = session
        path = local_path(location.folder)
        self._folder = location.folder if path is None else str(path.resolve())
        self.name = f"delta.`{self._folder.replace('`', '``')}`"
        """In SQL."""
        self.title = f"the table in {location.folder}"

    def snapshot(self) -> Any:
        """Delta's own object for the table as it is now; its version is -1 where there is none."""
        session: Any = self._session
        jvm = session.sparkContext._jvm
        with failures_reported(self.title):
            # Delta looks at the settings of the thread's session.
            jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
            log = jvm.org.apache.spark.sql.delta.DeltaLog
            return log.forTableWithSnapshot(session._jsparkSession, self._folder)._2()

    def ensure(self, schema: str, partition_by: Sequence[str]) -> None:
        """See `ArchiveTable`."""
        for term in partition_by:
            if not _COLUMN.fullmatch(term) or term in _BYTES:
                raise SparkConnectorError(
                    f"a table of Delta cannot be partitioned by {term!r}; write a column of plain"
                    " values, such as topic, date or partition"
                )
        if self._exists():
            return
        try:
            with failures_reported(self.title):
                self._session.sql(
                    f"CREATE TABLE IF NOT EXISTS {self.name} ({schema}) USING delta"
                    f" PARTITIONED BY ({', '.join(partition_by)})"
                )
        except SparkConnectorError:
            if not self._exists():  # nor has another run made it at the same time
                raise

    def state(self) -> TableState:
        """See `ArchiveTable`.

        The number of the last transaction is read before the log: where a batch comes in between,
        the one that is planned is refused.
        """
        transaction = self._last_transaction()
        position = None if transaction is None else self._position()
        is_empty = transaction is None and int(self.snapshot().numOfFiles()) == 0
        return TableState(position, "nothing" if transaction is None else transaction, is_empty)

    def append(
        self, frame: DataFrame, position: ArchivePosition, predecessor: str, gathers: bool
    ) -> int | None:
        """See `ArchiveTable`."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        columns = self.partition_columns()
        if gathers and columns:
            frame = frame.repartition(*columns)
        number = 0 if predecessor == "nothing" else int(predecessor) + 1
        writer = frame.write.format("delta").mode("append")
        writer = writer.option("txnAppId", APPLICATION).option("txnVersion", number)
        failure: Exception | None = None
        try:
            writer.option("userMetadata", POSITION + position.to_text()).save(self._folder)
        except (PySparkException, Py4JJavaError) as error:
            failure = error
        # Whatever the store answered, or did not: the table itself says what became of it.
        for commit in self.commits():
            if position.batch in (commit.metadata or ""):
                return int(commit.metrics.get("numOutputRows") or 0)
        if failure is None or _is_conflict(failure):
            return None
        raise failure

    def alter(self, change: str) -> None:
        """See `ArchiveTable`.

        Only a table in which a number becomes wider needs the feature for that: not every reader
        knows it.
        """
        with failures_reported(self.title):
            if _WIDENING.fullmatch(change):
                widening = "('delta.enableTypeWidening'='true')"
                self._session.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES {widening}")
            self._session.sql(f"ALTER TABLE {self.name} {change}")

    def read(self) -> DataFrame:
        """See `ArchiveTable`."""
        if not self._exists():
            raise SparkConnectorError(f"{self.title} is not there")
        return self._session.read.format("delta").load(self._folder)

    def partition_columns(self) -> list[str]:
        """What it is partitioned by."""
        names = self.snapshot().metadata().partitionColumns()
        return [str(names.apply(place)) for place in range(names.size())]

    def commits(self, count: int = COMMITS_AT_ONCE) -> list[Commit]:
        """The newest ones, the last one first; fewer where there are no more.

        Raises:
            SparkConnectorError: the log cannot be read.
        """
        with failures_reported(self.title):
            rows = self._session.sql(f"DESCRIBE HISTORY {self.name} LIMIT {count}").collect()
        found = [
            Commit(
                row["version"],
                row["operation"],
                row["operationParameters"] or {},
                row["operationMetrics"] or {},
                row["userMetadata"],
            )
            for row in rows
        ]
        return sorted(found, key=lambda commit: commit.version, reverse=True)

    def _exists(self) -> bool:
        return int(self.snapshot().version()) >= 0

    def _last_transaction(self) -> str | None:
        number = self.snapshot().transactions().get(APPLICATION)
        return str(number.get()) if number.isDefined() else None

    def _position(self) -> ArchivePosition | None:
        """Of the newest commit that has one; what was rolled back does not count."""
        count = COMMITS_AT_ONCE
        while True:
            commits = self.commits(count)
            newest: int | None = None
            for commit in commits:
                if newest is not None and commit.version > newest:
                    continue
                if (commit.metadata or "").startswith(POSITION):
                    text = (commit.metadata or "").removeprefix(POSITION)
                    return ArchivePosition.from_text(text, self.title)
                if commit.operation == RESTORE:
                    restored = commit.parameters.get("version")
                    if restored is None:
                        return None  # to a time: what the records themselves say will do
                    newest = int(restored)
            if len(commits) < count:
                return None
            count *= 10


def require_delta(session: SparkSession) -> None:
    """Of a session that can use tables of Delta.

    Raises:
        SparkConnectorError: it was started without.
    """
    if EXTENSION not in (session.conf.get("spark.sql.extensions", "") or ""):
        raise SparkConnectorError(
            "this Spark has no Delta; make the session with"
            " spark_session(packages=connector_packages(...) + delta_packages(...),"
            " conf=delta_conf())"
        )


def _is_conflict(error: Exception) -> bool:
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while java is not None:
        kind = java.getClass()
        while kind is not None:
            if kind.getName().startswith(CONFLICTS):
                return True
            kind = kind.getSuperclass()
        java = java.getCause()
    return False

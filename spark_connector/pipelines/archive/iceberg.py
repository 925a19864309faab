"""An archive as a table of Iceberg, in any catalog.

A batch is written as a snapshot that is staged (write-audit-publish, `spark.wap.id`), and then
published: Iceberg publishes no two snapshots of one id. The id names the commit that the batch
follows, so that of two runs at one position only one gets through, in every kind of catalog. The
position is a property of the snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import SparkConnectorError
from ...installation import SparkInstallation
from .failures import failures_reported
from .position import ArchivePosition
from .settings import NO_PROPERTIES, TableLocation
from .table import TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOG = "odradek_archive"
CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
ICEBERG_VERSION = "1.10.0"
SQLITE_URI = "jdbc:sqlite:"
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"

POSITION = "odradek.archive"
"""The property of a snapshot with its `ArchivePosition`."""

WAP_PREFIX = "odradek-after-"
STAGES = "write.wap.enabled"

_TRANSFORM = re.compile(
    r"(?:(?:years|months|days|hours)\(\w+\)|(?:bucket|truncate)\(\d{1,9},\s*\w+\)|\w+)"
)
_TABLE_NAME = re.compile(r"\w+(?:\.\w+)+")


def iceberg_packages(
    installation: SparkInstallation, catalog: Mapping[str, str] = NO_PROPERTIES
) -> list[str]:
    """The Maven coordinates of Iceberg for a Spark, to be given to `spark_session` as well.

    Args:
        installation: of Spark.
        catalog: its properties; one on SQLite has a driver of its own.
    """
    series = ".".join(installation.spark_version.split(".")[:2])
    scala = installation.scala_version
    runtime = f"org.apache.iceberg:iceberg-spark-runtime-{series}_{scala}:{ICEBERG_VERSION}"
    return [runtime, *([SQLITE_DRIVER] if catalog.get("uri", "").startswith(SQLITE_URI) else [])]


class IcebergTable:
    """A table in a catalog.

    Args:
        session: with Iceberg; its catalog `odradek_archive` becomes this table's.
        location: of the table.

    Raises:
        SparkConnectorError: the session has no Iceberg.
    """

    def __init__(self, session: SparkSession, location: TableLocation) -> None:
        if not _TABLE_NAME.fullmatch(location.table):
            raise SparkConnectorError(
                f"{location.table!r} names no table; write NAMESPACE.NAME, as in topics.records"
            )
        self._session = session
        self._location = location
        self._name = f"{CATALOG}.{location.table}"
        self.title = f"the table {location.table} in {location.folder}"
        use_catalog(session, location)

    def exists(self) -> bool:
        """Whether it is there.

        Raises:
            SparkConnectorError: the catalog does not answer.
        """
        with failures_reported(self.title):
            return self._session.catalog.tableExists(self._name)

    def ensure(self, schema: str, partition_by: Sequence[str]) -> None:
        """See `ArchiveTable`."""
        for term in partition_by:
            if not _TRANSFORM.fullmatch(term):
                raise SparkConnectorError(
                    f"{term!r} is nothing to partition by; write a column, or years, months, days"
                    " or hours(column), bucket(16, column), truncate(4, column)"
                )
        if not self.exists():
            namespace = self._name.rpartition(".")[0]
            with failures_reported(self.title):
                self._session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
                self._session.sql(
                    f"CREATE TABLE IF NOT EXISTS {self._name} ({schema}) USING iceberg"
                    f" PARTITIONED BY ({', '.join(partition_by)})"
                    f" TBLPROPERTIES ('{STAGES}'='true')"
                )

    def state(self) -> TableState:
        """See `ArchiveTable`."""
        table = self._loaded()
        snapshot = table.currentSnapshot()
        is_empty = snapshot is None
        while snapshot is not None:
            summary = snapshot.summary()
            mark = summary.get("published-wap-id") or summary.get("wap.id") or ""
            text = summary.get(POSITION)
            if text is not None or mark.startswith(WAP_PREFIX):
                text = text or _position_of_source(table, summary)
                position = None if text is None else ArchivePosition.from_text(text, self.title)
                return TableState(position, str(snapshot.snapshotId()), is_empty)
            parent = snapshot.parentId()
            snapshot = None if parent is None else table.snapshot(parent)
        return TableState(None, "nothing", is_empty)

    def append(
        self, frame: DataFrame, position: ArchivePosition, predecessor: str, gathers: bool
    ) -> int | None:
        """See `ArchiveTable`."""
        from py4j.protocol import Py4JJavaError

        if self._loaded().properties().get(STAGES) != "true":
            self.alter(f"SET TBLPROPERTIES ('{STAGES}'='true')")
        session = frame.sparkSession
        session.conf.set("spark.wap.id", f"{WAP_PREFIX}{predecessor}")
        try:
            writer = frame.writeTo(self._name).option("fanout-enabled", "true")
            writer = writer.option("distribution-mode", "hash" if gathers else "none")
            writer.option(f"snapshot-property.{POSITION}", position.to_text()).append()
        finally:
            session.conf.unset("spark.wap.id")
        table = self._loaded()
        staged = next(
            each
            for each in reversed(list(table.snapshots()))
            if position.batch in (each.summary().get(POSITION) or "")
        )
        try:
            table.manageSnapshots().cherrypick(staged.snapshotId()).commit()
        except Py4JJavaError:
            # Whatever the catalog answered, or did not: the table itself says what became of it.
            found = self.state().position
            if found is None or found.batch != position.batch:
                if self.state().predecessor != predecessor:
                    return None
                raise
        return int(staged.summary().get("added-records") or 0)

    def alter(self, change: str) -> None:
        """See `ArchiveTable`."""
        with failures_reported(self.title):
            self._session.sql(f"ALTER TABLE {self._name} {change}")

    def read(self) -> DataFrame:
        """See `ArchiveTable`."""
        if not self.exists():
            raise SparkConnectorError(f"{self.title} is not there")
        return self._session.table(self._name)

    def _loaded(self) -> Any:
        """Iceberg's own object for it, as it is now."""
        session: Any = self._session
        gateway: Any = session.sparkContext._gateway
        *space, name = self._location.table.split(".")
        namespace = gateway.new_array(gateway.jvm.java.lang.String, len(space))
        for place, part in enumerate(space):
            namespace[place] = part
        identifier = gateway.jvm.org.apache.spark.sql.connector.catalog.Identifier
        with failures_reported(self.title):
            # Catalogs are made by the settings of the thread's session.
            gateway.jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
            catalog = session._jsparkSession.sessionState().catalogManager().catalog(CATALOG)
            return catalog.loadTable(identifier.of(namespace, name)).table()


def use_catalog(session: SparkSession, location: TableLocation) -> None:
    """Let `CATALOG` of a session be the catalog of a location.

    Raises:
        SparkConnectorError: the session has no Iceberg.
    """
    jvm: Any = session.sparkContext._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    try:
        loader.loadClass(CATALOG_CLASS)
    except Exception as error:
        raise SparkConnectorError(
            "this Spark has no Iceberg; make the session with"
            " spark_session(packages=connector_packages(...) + iceberg_packages(...))"
        ) from error
    session.conf.set(f"spark.sql.catalog.{CATALOG}", CATALOG_CLASS)
    # What another writer has committed must be seen at once.
    properties = {"type": "hadoop", "warehouse": location.folder, "cache-enabled": "false"}
    given = dict(location.catalog)
    if "catalog-impl" in given:
        del properties["type"]
    if given.get("uri", "").startswith(SQLITE_URI):
        # Iceberg leaves a result open with each catalog that it makes. In SQLite's other modes the
        # lock of that one keeps all others from writing.
        properties["jdbc.journal_mode"] = "WAL"
    for name, value in {**properties, **given}.items():
        session.conf.set(f"spark.sql.catalog.{CATALOG}.{name}", value)


def _position_of_source(table: Any, summary: Any) -> str | None:
    """Of a snapshot that was published behind somebody else's: it is a copy of the staged one."""
    source = summary.get("source-snapshot-id")
    staged = None if source is None else table.snapshot(int(source))
    return None if staged is None else staged.summary().get(POSITION)

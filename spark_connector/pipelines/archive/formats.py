"""The formats of tables: what a session needs for each, and a table of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...errors import SparkConnectorError
from ...installation import SparkInstallation
from .delta import DeltaTable, delta_conf, delta_packages
from .iceberg import IcebergTable, iceberg_packages
from .settings import DELTA, ICEBERG, NO_PROPERTIES, TableLocation
from .table import ArchiveTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def table_packages(
    installation: SparkInstallation,
    table_format: str,
    catalog: Mapping[str, str] = NO_PROPERTIES,
) -> list[str]:
    """The Maven coordinates of what a session needs for tables.

    Args:
        installation: of Spark.
        table_format: one of `FORMATS`; Parquet needs nothing.
        catalog: of Iceberg, its properties.
    """
    if table_format == DELTA:
        return delta_packages(installation)
    return iceberg_packages(installation, catalog) if table_format == ICEBERG else []


def table_conf(table_format: str) -> dict[str, str]:
    """The configuration that a session must be started with for tables of a format."""
    return delta_conf() if table_format == DELTA else {}


def table_at(session: SparkSession, table_format: str, location: TableLocation) -> ArchiveTable:
    """The table of a location, there or not.

    Raises:
        SparkConnectorError: there is no such format, or the session lacks what it needs.
    """
    if table_format == ICEBERG:
        return IcebergTable(session, location)
    if table_format == DELTA:
        return DeltaTable(session, location)
    raise SparkConnectorError(f"{table_format!r} is no format of tables")

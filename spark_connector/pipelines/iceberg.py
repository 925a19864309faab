"""An archive as an Iceberg table, in a Hadoop catalog: a folder and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..errors import SparkConnectorError
from ..installation import SparkInstallation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CATALOG = "odradek_archive"
TABLE = f"{CATALOG}.topics.records"
ICEBERG_VERSION = "1.10.0"


def iceberg_packages(installation: SparkInstallation) -> list[str]:
    """The Maven coordinates of Iceberg for a Spark, to be given to `spark_session` as well."""
    series = ".".join(installation.spark_version.split(".")[:2])
    scala = installation.scala_version
    return [f"org.apache.iceberg:iceberg-spark-runtime-{series}_{scala}:{ICEBERG_VERSION}"]


def use_catalog(spark: SparkSession, folder: str) -> None:
    """Let the session's catalog be the folder.

    Raises:
        SparkConnectorError: the session has no Iceberg.
    """
    jvm = spark.sparkContext._jvm
    name = "org.apache.iceberg.spark.SparkCatalog"
    loader = jvm.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]  # py4j
    try:
        loader.loadClass(name)
    except Exception as error:
        raise SparkConnectorError(
            "this Spark has no Iceberg; make the session with"
            " spark_session(packages=connector_packages(...) + iceberg_packages(...))"
        ) from error
    spark.conf.set(f"spark.sql.catalog.{CATALOG}", name)
    spark.conf.set(f"spark.sql.catalog.{CATALOG}.type", "hadoop")
    spark.conf.set(f"spark.sql.catalog.{CATALOG}.warehouse", folder)


def create_table(
    spark: SparkSession, folder: str, schema: str, partitioned_by: Iterable[str]
) -> None:
    """Make the table if it is not there yet.

    Args:
        spark: a session with Iceberg.
        folder: the catalog's.
        schema: of the table, in DDL.
        partitioned_by: columns of the schema.

    Raises:
        SparkConnectorError: the session has no Iceberg.
    """
    use_catalog(spark, folder)
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {TABLE} ({schema}) USING iceberg"
        f" PARTITIONED BY ({', '.join(partitioned_by)})"
    )


def table_at(spark: SparkSession, folder: str) -> DataFrame:
    """The table in a folder.

    Raises:
        SparkConnectorError: the session has no Iceberg, or the folder no table.
    """
    session = spark.newSession()
    use_catalog(session, folder)
    if not session.catalog.tableExists(TABLE):
        raise SparkConnectorError(f"{folder} holds no archive as an Iceberg table")
    return session.table(TABLE)

"""Making the formats `odradek` and `odradek-log` known to a Spark session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> SparkSession:
    """Let `format("odradek")` and `format("odradek-log")` be used in a session.

    Not needed where odradek is installed as a wheel: Spark finds the modules `pyspark_odradek`
    and `pyspark_odradek_log` by itself. The package has to be installed for the workers, too.

    Returns:
        The session.
    """
    from pyspark.errors import AnalysisException

    from .kafka_source.source import KafkaDataSource
    from .log_source.source import LogDataSource

    for source in (KafkaDataSource, LogDataSource):
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            # Spark has found it by itself.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
    return spark

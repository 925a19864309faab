"""Makes `format("odradek-log")` known: Spark looks for modules called `pyspark_...`."""

from odradek.spark_connector.log_source.source import LogDataSource as DefaultSource

__all__ = ["DefaultSource"]

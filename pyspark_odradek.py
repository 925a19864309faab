"""Makes `format("odradek")` known: Spark looks for modules called `pyspark_...`."""

from odradek.spark_connector.kafka_source.source import KafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]

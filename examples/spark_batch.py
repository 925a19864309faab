"""Write a DataFrame to a topic and read it back, with Spark's own Kafka source and sink.

Start a broker (`odradek serve`), then: python examples/spark_batch.py [HOST:PORT]
"""

import sys

from odradek.spark_connector import spark_session

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
TOPIC = "squares"

spark = spark_session("batch example", master="local[2]")

squares = spark.range(1000).selectExpr(
    "CAST(id AS STRING) AS key", "CAST(id * id AS STRING) AS value"
)
squares.write.format("kafka").option("kafka.bootstrap.servers", BROKER).option(
    "topic", TOPIC
).save()

records = (
    spark.read.format("kafka")
    .option("kafka.bootstrap.servers", BROKER)
    .option("subscribe", TOPIC)
    .load()
)
records.selectExpr(
    "count(*) AS records", "max(CAST(CAST(value AS STRING) AS BIGINT)) AS largest"
).show()
spark.stop()

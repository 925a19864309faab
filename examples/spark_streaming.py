"""Count words that arrive in a topic, with Structured Streaming, into another topic.

Start a broker (`odradek serve`), then: python examples/spark_streaming.py [HOST:PORT]

It reads what is in the topic and ends. Without `trigger(availableNow=True)` it would go on
for ever; with the same checkpoint folder it would go on where it stopped.
"""

import sys
import tempfile

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import functions as F

from odradek.spark_connector import spark_session

BROKER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

with KafkaProducer(bootstrap_servers=BROKER) as producer:
    for line in ("to be or not to be", "that is the question"):
        producer.send("lines", line.encode())

spark = spark_session(
    "streaming example", master="local[2]", conf={"spark.sql.shuffle.partitions": "2"}
)
lines = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", BROKER)
    .option("subscribe", "lines")
    .option("startingOffsets", "earliest")
    .load()
)
words = lines.select(F.explode(F.split(F.col("value").cast("string"), " ")).alias("key"))
counts = words.groupBy("key").agg(F.count("*").cast("string").alias("value"))
with tempfile.TemporaryDirectory() as checkpoint:
    query = (
        counts.writeStream.outputMode("update")
        .format("kafka")
        .option("kafka.bootstrap.servers", BROKER)
        .option("topic", "word-counts")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
spark.stop()

with KafkaConsumer(bootstrap_servers=BROKER, auto_offset_reset="earliest") as consumer:
    partitions = [
        TopicPartition("word-counts", number)
        for number in consumer.partitions_for_topic("word-counts")
    ]
    consumer.assign(partitions)
    left = sum(consumer.end_offsets(partitions).values())
    while left > 0:
        for records in consumer.poll(timeout_ms=1000).values():
            for record in records:
                print(record.key.decode(), record.value.decode())
            left -= len(records)

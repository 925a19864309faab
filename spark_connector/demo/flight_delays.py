"""The demo's query: flights from a topic, delays per airline and hour to Parquet and a topic.

It is Spark Structured Streaming through Spark's own Kafka source and sink; nothing in it
knows which broker it talks to.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..pipelines.topic_source import TopicSource
from .flights_topics import DemoTopics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DELAYS_OFFSETS_PER_BATCH_MAX = 170_000
"""The flights of a year are two batches."""

FLIGHT_SCHEMA = "carrier STRING, dep_time INT, dep_delay INT, arr_delay INT"

TABLE_KEY = ("carrier", "hour")
"""One row of the table for each airline and hour (UTC) in which it had flights."""

TABLE_COLUMNS = (
    "carrier",
    "airline",
    "hour",
    "flights",
    "cancelled",
    "arrivals",
    "departure_delay_minutes",
    "arrival_delay_minutes",
    "mean_departure_delay",
    "mean_arrival_delay",
)
"""Delays are in minutes, negative when early; means are null where no flight had one."""


def delays_by_airline_and_hour(flights: DataFrame, airlines: DataFrame) -> DataFrame:
    """Aggregate Kafka records of flights, joined with Kafka records of airlines.

    The hour is that of the record's timestamp, the scheduled departure. A cancelled flight has
    no departure time, and no delay; one that was diverted has no arrival delay. What is no flight
    at all has no carrier.
    """
    from pyspark.sql import functions as F

    # An option, if only the usual mode: without any, Spark parses a text once for each field.
    mode = {"mode": "PERMISSIVE"}
    flight = F.from_json(F.col("value").cast("string"), FLIGHT_SCHEMA, mode)
    airline = F.from_json(F.col("value").cast("string"), "carrier STRING, name STRING")
    names = airlines.select(airline.alias("airline")).select(
        "airline.carrier", F.col("airline.name").alias("airline")
    )
    minutes = {
        name: F.coalesce(F.sum(delay), F.lit(0)).alias(f"{name}_delay_minutes")
        for name, delay in (("departure", "dep_delay"), ("arrival", "arr_delay"))
    }
    return (
        flights.select("timestamp", flight.alias("flight"))
        .select("timestamp", "flight.*")
        .join(F.broadcast(names), "carrier", "left")
        .groupBy("carrier", "airline", F.window("timestamp", "1 hour").alias("window"))
        .agg(
            F.count("*").alias("flights"),
            F.count_if(F.col("dep_time").isNull()).alias("cancelled"),
            F.count("arr_delay").alias("arrivals"),
            minutes["departure"],
            minutes["arrival"],
            F.avg("dep_delay").alias("mean_departure_delay"),
            F.avg("arr_delay").alias("mean_arrival_delay"),
        )
        .withColumn("hour", F.col("window.start"))
        .select(*TABLE_COLUMNS)
    )


def start_query(
    spark: SparkSession, bootstrap_servers: str, topics: DemoTopics, output: Path
) -> StreamingQuery:
    """Start the stream: it reads what is in the topic now, in several batches, and ends.

    It runs in update mode: each batch writes the rows it changed, so that an hour cut in two
    by a batch is written twice and its later row counts. Both sinks tell the batch (a folder
    `batch=N`, a header `batch`), so their readers can tell later from earlier, and a batch
    that is tried again replaces its folder.
    """
    from pyspark.sql import functions as F

    flights = TopicSource(bootstrap_servers, (topics.flights_again,)).read_stream(
        spark, startingOffsets="earliest", maxOffsetsPerTrigger=str(DELAYS_OFFSETS_PER_BATCH_MAX)
    )
    airlines = TopicSource(bootstrap_servers, (topics.airlines,)).read(spark)

    def write_batch(rows: DataFrame, batch: int) -> None:
        # Before, a filter would have Spark parse each record's text once more.
        rows = rows.where("carrier IS NOT NULL").persist()
        rows.write.mode("overwrite").parquet(str(output / "delays" / f"batch={batch}"))
        header = F.struct(F.lit("batch").alias("key"), F.lit(str(batch).encode()).alias("value"))
        rows.select(
            F.concat_ws("|", "carrier", F.date_format("hour", "yyyy-MM-dd'T'HH:mm:ss'Z'")).alias(
                "key"
            ),
            F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("value"),
            F.array(header).alias("headers"),
        ).write.format("kafka").option("kafka.bootstrap.servers", bootstrap_servers).option(
            "topic", topics.delays
        ).save()
        rows.unpersist()

    return (
        delays_by_airline_and_hour(flights, airlines)
        .writeStream.outputMode("update")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(output / "checkpoint"))
        .foreachBatch(write_batch)
        .start()
    )

"""Longer runs of Spark on topics: much data, restarts in the middle, a broker that crashes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

pytestmark = pytest.mark.spark

PARTITIONS = 4
QUERY_SECONDS_MAX = 240


class Numbers:
    """Produces 0, 1, 2, ... and keeps in mind which were acknowledged, and where."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(90)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 20,
                "queue.buffering.max.messages": 400_000,
            }
        )
        self._topic = topic
        self._next = 0
        self.acknowledged: dict[tuple[int, int], int] = {}

    def produce(self, count: int) -> None:
        """Hand the next `count` numbers to the producer; serves what has been acknowledged."""
        for number in range(self._next, self._next + count):
            self._producer.produce(
                self._topic,
                b"%d" % number,
                partition=number % PARTITIONS,
                on_delivery=lambda error, message, number=number: self._note(
                    error, message, number
                ),
            )
            if number % 5_000 == 0:
                self._producer.poll(0)
        self._next += count

    def flush(self) -> None:
        """Wait until every number is acknowledged."""
        assert self._producer.flush(90) == 0

    def _note(self, error: Any, message: Any, number: int) -> None:
        assert error is None, error
        place = (message.partition(), message.offset())
        assert place not in self.acknowledged
        self.acknowledged[place] = number


def numbers_in(spark: Any, parquet: Path) -> list[tuple[tuple[int, int], int]]:
    rows = spark.read.parquet(str(parquet)).selectExpr("partition", "offset", "number").collect()
    return sorted(((row.partition, row.offset), int(row.number)) for row in rows)


def read_available(spark: Any, bootstrap: str, topic: str, folder: Path) -> None:
    """Let a query go on from its checkpoint to the end of what is there now."""
    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 12_000)
        .load()
        .selectExpr("partition", "offset", "CAST(value AS STRING) AS number")
        .writeStream.format("parquet")
        .option("path", str(folder / "table"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(QUERY_SECONDS_MAX)


@pytest.mark.timeout(400)
def test_records_reach_parquet_once_over_restarts_of_query_and_broker(
    spark: Any, start_broker: Callable[..., Any], topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    numbers = Numbers(broker.bootstrap, topic)
    for restart in (broker.restart, lambda: (broker.kill(), broker.start()), None):
        numbers.produce(20_000)
        if restart is not None:
            restart()  # while the producer still has some in flight
        numbers.produce(14_000)
        numbers.flush()
        read_available(spark, broker.bootstrap, topic, tmp_path)
    assert len(numbers.acknowledged) == 102_000
    assert numbers_in(spark, tmp_path / "table") == sorted(numbers.acknowledged.items())


@pytest.mark.timeout(300)
def test_a_broker_that_is_killed_under_a_running_query_does_not_cost_it_a_record(
    spark: Any, start_broker: Callable[..., Any], topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    numbers = Numbers(broker.bootstrap, topic)
    numbers.produce(50_000)
    numbers.flush()
    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("partition", "offset", "CAST(value AS STRING) AS number")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "table"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="500 milliseconds")
        .start()
    )
    try:
        query.processAllAvailable()
        broker.kill()
        broker.start()
        numbers.produce(50_000)
        numbers.flush()
        query.processAllAvailable()
    finally:
        query.stop()
    assert len(numbers.acknowledged) == 100_000
    assert numbers_in(spark, tmp_path / "table") == sorted(numbers.acknowledged.items())

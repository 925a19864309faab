"""Topics of flights that are copied, and how a copy is compared with what it is of."""

from __future__ import annotations

from functools import cache
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.spark_connector.demo.flights import read_flights
from odradek.spark_connector.pipelines import TopicSource

PARTITIONS = 3
TRANSACTION = 400
ABORT_EVERY = 5


@cache
def first_flights(count: int) -> list[Any]:
    """Of the year; all of them are a third of a million."""
    return read_flights(count)


def produce_flights(bootstrap: str, topic: str, count: int) -> int:
    """Flights in transactions, some aborted, with nulls, headers and tombstones among them.

    Returns how many records are committed.
    """
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": topic,
            "queue.buffering.max.messages": 500_000,
        }
    )
    producer.init_transactions(90)
    flights = first_flights(count)
    committed = 0
    for number, first in enumerate(range(0, len(flights), TRANSACTION)):
        producer.begin_transaction()
        chunk = flights[first : first + TRANSACTION]
        for place, flight in enumerate(chunk):
            key, value, headers = _varied(place, flight.key, flight.value)
            partition = sum(flight.key) % (PARTITIONS - 1)  # the last one stays empty
            producer.produce(
                topic, value, key, partition, timestamp=flight.timestamp_ms, headers=headers
            )
        if number % ABORT_EVERY == ABORT_EVERY - 1:
            producer.flush(90)
            producer.abort_transaction(90)
        else:
            producer.commit_transaction(90)
            committed += len(chunk)
    return committed


def _varied(place: int, key: bytes, value: bytes) -> tuple[Any, Any, list[Any]]:
    """Every kind of null and emptiness there is."""
    many: list[Any] = [("a", b"1"), ("b", None), ("a", b""), ("\u00e9", b"\xff\x00")]
    return {
        0: (None, value, []),
        1: (key, None, []),
        2: (b"", b"", [("empty", b"")]),
        3: (None, None, many),
        4: (key, value, many),
    }.get(place % 50, (key, value, []))


def rows(spark: Any, bootstrap: str, topic: str) -> Any:
    """A topic's committed records with their places in the order of the partition."""
    frame = TopicSource(bootstrap, (topic,)).read(spark)
    return placed(frame)


def placed(frame: Any) -> Any:
    """The records of one topic with their places, instead of offsets, which a copy has not."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    place = F.row_number().over(Window.partitionBy("partition").orderBy("offset"))
    kept = ("partition", "key", "value", "timestamp", "timestampType", "headers")
    return frame.select(place.alias("place"), *kept)


def assert_same(left: Any, right: Any, count: int) -> None:
    """No row of the one is missing in the other, either way round."""
    left, right = left.persist(), right.persist()
    try:
        assert (left.count(), right.count()) == (count, count)
        same = None
        for name in left.columns:
            equal = left[name].eqNullSafe(right[name])
            same = equal if same is None else same & equal
        assert left.join(right, same, "left_anti").count() == 0
        assert right.join(left, same, "left_anti").count() == 0
    finally:
        left.unpersist()
        right.unpersist()


class TopicEnd:
    """How far a topic's first two partitions reach; 0 while it is not there."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
        self._topic = topic
        self._is_there = False

    def __call__(self) -> int:
        if not self._is_there:
            self._is_there = self._topic in self._consumer.list_topics(timeout=90).topics
            return 0
        partitions = [TopicPartition(self._topic, partition) for partition in range(2)]
        ends = [self._consumer.get_watermark_offsets(each, timeout=90) for each in partitions]
        return sum(end for _, end in ends)

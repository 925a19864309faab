"""Spark's Kafka sink in batch mode, read back with kafka-python."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Topics

pytestmark = pytest.mark.spark


@pytest.mark.short
def test_rows_become_records_with_keys_and_headers(spark: Any, topics: Topics) -> None:
    topic = topics.create()
    rows = [(f"key-{number}", f"value-{number}", str(number)) for number in range(200)]
    frame = spark.createDataFrame(rows, "key STRING, value STRING, number STRING").selectExpr(
        "key",
        "value",
        "array(struct('number' AS key, CAST(number AS BINARY) AS value)) AS headers",
    )
    frame.write.format("kafka").option("kafka.bootstrap.servers", topics.bootstrap).option(
        "topic", topic
    ).save()
    found = [
        (record.key.decode(), record.value.decode(), dict(record.headers)["number"].decode())
        for record in topics.read(topic, 200)
    ]
    assert sorted(found) == sorted(rows)
    assert sum(topics.end_offsets(topic).values()) == 200


def test_rows_may_name_their_topic_and_partition(spark: Any, topics: Topics) -> None:
    left, right = topics.create("-left"), topics.create("-right")
    rows = [(left, 1, "a"), (right, 0, "b"), (left, 1, "c")]
    frame = spark.createDataFrame(rows, "topic STRING, partition INT, value STRING")
    frame.write.format("kafka").option("kafka.bootstrap.servers", topics.bootstrap).save()
    found = [
        (record.topic, record.partition, record.value.decode())
        for topic, count in ((left, 2), (right, 1))
        for record in topics.read(topic, count)
    ]
    assert sorted(found) == sorted(rows)

"""Both sources and sinks over TLS, with certificates on both sides, by Java's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from support.spark_rows import by_place, fill, rows_of

from odradek.spark_connector import register
from odradek.testing import Broker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(200)]

SOURCES = ("kafka", "odradek")
PARTITIONS = 2
COUNT = 100
SECONDS_MAX = 90


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    """A broker that wants a certificate of every client."""
    with Broker({"ssl.client.auth": "required"}, tls=True) as broker:
        yield broker


def create(broker: Broker, name: str) -> None:
    admin = AdminClient(broker.client_settings("confluent-kafka"))
    made = NewTopic(name, PARTITIONS, 1, config={"retention.ms": "-1"})
    admin.create_topics([made])[name].result(SECONDS_MAX)


def options_for(settings: dict[str, Any]) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in settings.items()}


def test_both_sources_read_and_write_with_certificates(
    spark: Any, secured: Broker, topic: str
) -> None:
    register(spark)
    create(secured, topic)
    produced = fill(
        secured.bootstrap, topic, COUNT, PARTITIONS, **secured.client_settings("confluent-kafka")
    )
    options = options_for(secured.client_settings("java"))
    for source in SOURCES:
        reader = spark.read.format(source).options(**options).option("includeHeaders", "true")
        frame = reader.option("subscribe", topic).load()
        assert rows_of(frame) == by_place(produced), source
        create(secured, copy := f"{topic}-{source}")
        columns = frame.select("partition", "key", "value", "headers")
        columns.write.format(source).options(**options).option("topic", copy).mode("append").save()
        copied = rows_of(reader.option("subscribe", copy).load())
        assert sorted(map(str, (row[5:] for row in copied))) == sorted(
            map(str, (row[5:] for row in produced))
        ), source


def test_both_sources_say_that_a_client_without_a_certificate_is_refused(
    spark: Any, secured: Broker, topic: str
) -> None:
    register(spark)
    create(secured, topic)
    settings = secured.client_settings("java", certificate=False)
    short = {"request.timeout.ms": "2000", "default.api.timeout.ms": "3000"}
    options = options_for({**settings, **short})
    for source, told in (("kafka", "(?i)ssl|timeout"), ("odradek", "no broker answers|refuses")):
        reader = spark.read.format(source).options(**options).option("subscribe", topic)
        with pytest.raises(Exception, match=told):
            reader.load().collect()

"""Kafka's own clients and librdkafka push their metrics (KIP-714), as Kafka's tool subscribes."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from odradek.testing import Broker
from odradek.testing.inspection.states import InspectedClientMetrics
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.interop

TOOL = "org.apache.kafka.tools.ClientMetricsCommand"
PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER = "org.apache.kafka.tools.ConsumerPerformance"
SENT = "org.apache.kafka.producer.record.send.total"
RECORDS = 50
SLOWLY_SENT = 250
"""At fifty a second: a client that has much to wait for pushes between two of them, too."""
SECONDS_MAX = 60.0
Java = Callable[..., str]


@pytest.fixture
def subscribed(java: Java) -> Iterator[Broker]:
    """A broker that wants to know everything of everybody, five times a second."""
    with Broker() as broker:
        java(
            TOOL,
            *("--bootstrap-server", broker.bootstrap_servers, "--alter", "--name", "all"),
            *("--metrics", "*", "--interval", "200"),
        )
        yield broker


def pushed(broker: Broker, client_id: str) -> InspectedClientMetrics | None:
    """What a client has pushed, if anything."""
    found = [each for each in broker.client_metrics() if each.client_id == client_id]
    return found[0] if found and found[0].metrics else None


def test_javas_clients_push(subscribed: Broker, java: Java) -> None:
    to = ("--bootstrap-server", subscribed.bootstrap_servers)
    java(
        PRODUCER,
        *(*to, "--topic", "events", "--num-records", str(SLOWLY_SENT), "--record-size", "10"),
        *("--throughput", "50", "--command-property", "client.id=java-producer"),
    )
    wrote = pushed(subscribed, "java-producer")
    assert wrote is not None, subscribed.client_metrics()
    assert (wrote.software_name, wrote.subscribed, wrote.interval_ms) == (
        "apache-kafka-java",
        ("*",),
        200,
    )
    # What it measured after its last push but one it may keep to itself.
    assert 0 < (wrote.value(SENT) or 0) <= SLOWLY_SENT

    java(
        CONSUMER,
        *(*to, "--topic", "events", "--num-records", str(RECORDS), "--timeout", "20000"),
        *("--command-property", "client.id=java-consumer"),
    )
    read = pushed(subscribed, "java-consumer")
    assert read is not None, subscribed.client_metrics()
    assert read.value("org.apache.kafka.consumer.fetch.manager.records.consumed.total") is not None


def test_librdkafkas_clients_push(subscribed: Broker) -> None:
    where = {"bootstrap.servers": subscribed.bootstrap_servers, "log_level": 2}
    producer = Producer({**where, "client.id": "c-producer"})
    for number in range(RECORDS):
        producer.produce("events", str(number))
    assert producer.flush(SECONDS_MAX) == 0
    consumer = Consumer({**where, "client.id": "c-consumer", "group.id": "g"})
    consumer.subscribe(["events"])

    def both_pushed() -> bool:
        producer.poll(0)
        consumer.poll(0.05)
        return all(pushed(subscribed, name) for name in ("c-producer", "c-consumer"))

    wait_until(both_pushed, timeout=SECONDS_MAX)
    found = pushed(subscribed, "c-producer")
    assert found is not None
    assert found.value("org.apache.kafka.producer.connection.creation.total") is not None
    consumer.close()


def test_prometheus_scrapes_what_clients_pushed(java: Java, tmp_path: Path) -> None:
    from prometheus_client.parser import text_string_to_metric_families
    from support.metrics_page import scrape

    from odradek.testing.process.broker_process import BrokerProcess

    with BrokerProcess(tmp_path / "data", arguments=["--metrics", "127.0.0.1:0"]) as broker:
        to = ("--bootstrap-server", broker.bootstrap)
        java(TOOL, *to, "--alter", "--name", "n", "--metrics", "org.apache.kafka.producer.record")
        java(
            PRODUCER,
            *(*to, "--topic", "events", "--num-records", "10", "--record-size", "10"),
            *("--throughput", "-1", "--command-property", "client.id=java producer"),
        )
        (url,) = broker.metrics_urls
        assert scrape(url)["odradek_client_metrics_clients"] == 1
        with urllib.request.urlopen(url) as page:
            families = text_string_to_metric_families(page.read().decode())
            samples = [each for family in families for each in family.samples]
        sent = [each for each in samples if each.name.endswith("producer_record_send_total")]
        assert [(each.name, each.value, each.labels["client_id"]) for each in sent] == [
            ("client_org_apache_kafka_producer_record_send_total", 10.0, "java producer")
        ]
        of_clients = {each.name for each in samples if each.name.startswith("client_")}
        assert all(
            name.startswith("client_org_apache_kafka_producer_record") for name in of_clients
        )


def test_a_subscription_is_described_and_deleted(subscribed: Broker, java: Java) -> None:
    to = ("--bootstrap-server", subscribed.bootstrap_servers)
    assert "interval.ms=200" in java(TOOL, *to, "--describe", "--name", "all")
    java(TOOL, *to, "--delete", "--name", "all")
    assert "all" not in java(TOOL, *to, "--list").split()

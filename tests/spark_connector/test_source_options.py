"""The options of `format("odradek")`: a mistake is told in a sentence that names its option."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.spark_connector import SparkConnectorError

pytest.importorskip("pyspark", reason="the data sources are classes of PySpark's")

from odradek.spark_connector.kafka_source.cluster import admin_client
from odradek.spark_connector.kafka_source.kafka_settings import (
    consumer_settings,
    kafka_settings,
    producer_settings,
)
from odradek.spark_connector.kafka_source.options import read_options

GIVEN = {"kafka.bootstrap.servers": "broker:9092"}


def options_of(*, is_stream: bool = False, **more: str) -> Any:
    given = {**GIVEN, "subscribe": "flights"} | {
        name.replace("__", "."): value for name, value in more.items()
    }
    return read_options(given, is_stream=is_stream)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("subscribe", " , "),
        ("startingOffsets", "newest"),
        ("startingOffsets", '{"flights": [1]}'),
        ("startingOffsets", '{"flights": {"zero": 1}}'),
        ("startingOffsets", '{"flights": {"0": -3}}'),
        ("startingOffsets", '{"flights": {"0": 1.5}}'),
        ("startingOffsets", '{"flights"'),
        ("startingOffsets", "latest"),
        ("startingOffsets", '{"flights": {"0": -1}}'),
        ("endingOffsets", "earliest"),
        ("endingOffsets", '{"flights": {"0": -2}}'),
        ("startingTimestamp", "yesterday"),
        ("endingTimestamp", "-5"),
        ("startingOffsetsByTimestamp", '{"flights": {"0": -1}}'),
        ("startingOffsetsByTimestampStrategy", "earliest"),
        ("minPartitions", "0"),
        ("maxRecordsPerPartition", "none"),
        ("failOnDataLoss", "no"),
        ("maxTriggerDelay", "soon"),
        ("minOffsetsPerTrigger", "0"),
    ],
)
def test_an_impossible_value_is_reported_with_its_option(option: str, value: str) -> None:
    with pytest.raises(SparkConnectorError, match=rf"'{option}'") as raised:
        options_of(**{option: value})
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("given", [{}, {"subscribe": "a", "assign": '{"a": [0]}'}])
def test_exactly_one_selection_must_be_given(given: dict[str, str]) -> None:
    with pytest.raises(SparkConnectorError, match="'subscribePattern'"):
        read_options({**GIVEN, **given}, is_stream=False)


def test_a_stream_has_no_ending_offsets() -> None:
    with pytest.raises(SparkConnectorError, match="'endingOffsets'"):
        options_of(is_stream=True, endingOffsets="latest")


def test_a_stream_may_start_at_the_latest_offset() -> None:
    assert options_of(is_stream=True, startingOffsets="latest").start.everywhere == -1


def test_a_lower_bound_above_the_upper_one_is_refused() -> None:
    with pytest.raises(SparkConnectorError, match="'minOffsetsPerTrigger' is 20"):
        options_of(is_stream=True, minOffsetsPerTrigger="20", maxOffsetsPerTrigger="10")


def test_a_time_for_all_wins_over_times_by_partition_and_those_over_offsets() -> None:
    by_partition = {"startingOffsetsByTimestamp": '{"flights": {"0": 7}}'}
    offsets = {"startingOffsets": "earliest"}
    both = options_of(**offsets, **by_partition)
    assert both.start.timestamps_ms == {("flights", 0): 7}
    all_three = options_of(**offsets, **by_partition, startingTimestamp="9")
    assert all_three.start.timestamp_ms == 9


def test_a_missing_bootstrap_server_is_reported() -> None:
    with pytest.raises(SparkConnectorError, match=r"'kafka\.bootstrap\.servers'"):
        read_options({"subscribe": "a"}, is_stream=False)


@pytest.mark.parametrize(
    "name",
    ["auto.offset.reset", "key.deserializer", "enable.auto.commit", "interceptor.classes"],
)
def test_what_spark_refuses_of_kafka_is_refused(name: str) -> None:
    with pytest.raises(SparkConnectorError, match=rf"'kafka\.{name}'"):
        kafka_settings({**GIVEN, f"kafka.{name}": "x"})


def test_a_setting_that_no_client_has_is_left_out_with_a_warning() -> None:
    misspelt = {**GIVEN, "kafka.fetch.max.bites": "5", "kafka.error_cb": "print"}
    with pytest.warns(UserWarning, match="has no effect") as warned:
        assert kafka_settings(misspelt) == kafka_settings(GIVEN)
    first, second = (str(each.message) for each in warned)
    assert "'kafka.fetch.max.bites'" in first
    assert "did you mean 'kafka.fetch.max.bytes'?" in first
    assert "'kafka.error_cb'" in second


def test_a_setting_of_security_that_no_client_has_is_refused() -> None:
    with pytest.raises(SparkConnectorError, match=r"'kafka\.sasl\.mechanisn'.*did you mean"):
        kafka_settings({**GIVEN, "kafka.sasl.mechanisn": "PLAIN"})


def test_a_login_of_java_becomes_user_and_password() -> None:
    login = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="ann" password="a\\"b;c";'
    )
    found = kafka_settings(
        {**GIVEN, "kafka.sasl.jaas.config": login, "kafka.sasl.mechanism": "SCRAM-SHA-256"}
    )
    assert (found["sasl.username"], found["sasl.password"]) == ("ann", 'a"b;c')
    assert found["sasl.mechanisms"] == "SCRAM-SHA-256"
    assert "sasl.jaas.config" not in found


def test_a_java_key_store_is_refused_and_a_pem_file_taken() -> None:
    store = {**GIVEN, "kafka.ssl.truststore.location": "/etc/ca"}
    with pytest.raises(SparkConnectorError, match=r"'kafka\.ssl\.truststore\.location'"):
        kafka_settings(store)
    pem = kafka_settings({**store, "kafka.ssl.truststore.type": "PEM"})
    assert pem["ssl.ca.location"] == "/etc/ca"


def test_clients_of_each_kind_get_the_settings_they_know() -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    found = kafka_settings(
        {
            **GIVEN,
            "kafka.fetch.max.wait.ms": "100",
            "kafka.max.poll.records": "500",
            "kafka.delivery.timeout.ms": "30000",
            "kafka.buffer.memory": "33554432",
            "kafka.request.timeout.ms": "20000",
            "kafka.isolation.level": "read_committed",
            "kafka.partition.assignment.strategy": "range",
            "kafka.ssl.endpoint.identification.algorithm": "",
        }
    )
    consumer = consumer_settings(found)
    assert consumer["fetch.wait.max.ms"] == "100"
    assert consumer["socket.timeout.ms"] == "20000"
    producer = producer_settings(found)
    assert producer["message.timeout.ms"] == "30000"
    assert producer["queue.buffering.max.kbytes"] == str(32 * 1024)
    # librdkafka refuses a name that it does not know.
    confluent_kafka.Consumer({**consumer, "group.id": "g"}).close()
    confluent_kafka.Producer(producer)
    admin_client(found)


@pytest.mark.parametrize(
    ("name", "value", "known_as", "becomes"),
    [
        ("fetch.max.bytes", "5000", "fetch.max.bytes", "5000"),
        ("fetch.max.bytes", "0", "fetch.max.bytes", "1000"),
        ("fetch.max.bytes", str(2**31 - 1), "fetch.max.bytes", str(2**31 - 1 - 512)),
        ("fetch.min.bytes", "0", "fetch.min.bytes", "1"),
        ("max.partition.fetch.bytes", str(2**31 - 1), "max.partition.fetch.bytes", "1000000000"),
        ("receive.buffer.bytes", "-1", "socket.receive.buffer.bytes", "0"),
        ("session.timeout.ms", "600000", "session.timeout.ms", None),
    ],
)
def test_what_java_allows_is_moved_to_where_librdkafka_takes_it(
    name: str, value: str, known_as: str, becomes: str | None
) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    found = consumer_settings(kafka_settings({**GIVEN, f"kafka.{name}": value}))
    assert found.get(known_as) == becomes
    confluent_kafka.Consumer({**found, "group.id": "g"}).close()  # or it raises


def test_uncommitted_records_are_read_unless_options_say_otherwise() -> None:
    settings = options_of().consumer_settings()
    assert settings["isolation.level"] == "read_uncommitted"
    committed = options_of(kafka__isolation__level="read_committed").consumer_settings()
    assert committed["isolation.level"] == "read_committed"


def test_a_group_of_the_users_is_used_and_else_a_new_one_each_time() -> None:
    assert options_of(kafka__group__id="mine").group_id == "mine"
    first, second = (options_of(groupIdPrefix="team").group_id for _ in range(2))
    assert first.startswith("team-")
    assert first != second

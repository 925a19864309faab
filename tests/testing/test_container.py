"""`KafkaContainer`: a test that used testcontainers' class keeps its calls."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer

from odradek.testing import KafkaContainer
from odradek.testing.container import setting_of
from odradek.testing.process.broker_process import BrokerStartError
from odradek.testing.process.held_port import HeldPort


def test_a_container_serves_clients_and_leaves_nothing():
    with KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft() as kafka:
        address = kafka.get_bootstrap_server()
        assert address == f"{kafka.get_container_host_ip()}:{kafka.get_exposed_port(9093)}"
        producer = KafkaProducer(bootstrap_servers=address)
        assert producer.send("made-by-itself", b"hello").get(30).offset == 0
        producer.close()
        folder, pid = kafka.broker.folder, kafka.broker.pid
        assert b"made-by-itself" in kafka.get_logs()[1]
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()


def test_variables_of_the_image_are_settings_of_the_broker():
    kafka = KafkaContainer(env={"KAFKA_NUM_PARTITIONS": "3"})
    kafka.with_env("KAFKA_HEAP_OPTS", "-Xmx1G").with_env("TZ", "UTC").with_env("KAFKA_NODE_ID", 1)
    with kafka:
        address = kafka.get_bootstrap_server()
        producer = KafkaProducer(bootstrap_servers=address)
        producer.send("made-by-itself", b"hello").get(30)
        producer.close()
        consumer = KafkaConsumer(bootstrap_servers=address)
        assert len(consumer.partitions_for_topic("made-by-itself")) == 3
        consumer.close()


@pytest.mark.parametrize(
    ("variable", "setting"),
    [
        ("KAFKA_LOG_RETENTION_MS", "log.retention.ms"),
        ("KAFKA_ONE__TWO_THREE___FOUR", "one_two.three-four"),
    ],
)
def test_names_of_variables_follow_the_rule_of_the_images(variable: str, setting: str):
    assert setting_of(variable) == setting


def test_a_variable_that_is_no_setting_is_refused_by_name():
    kafka = KafkaContainer().with_env("KAFKA_NUM_PARTITION", 3)
    with pytest.raises(BrokerStartError, match=re.escape("num.partition: there is no such")):
        kafka.start()


def test_a_port_can_be_chosen_and_is_free_again_at_once():
    with HeldPort() as held:
        for _ in range(2):
            with KafkaContainer(port=9092).with_bind_ports(9092, held.port) as kafka:
                assert kafka.get_exposed_port(9092) == held.port
                with pytest.raises(ValueError, match="port is 9092"):
                    kafka.get_exposed_port(9093)


def test_what_is_not_started_says_so():
    with pytest.raises(RuntimeError, match="not started"):
        KafkaContainer().get_bootstrap_server()

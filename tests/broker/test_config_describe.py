"""Settings as described to clients, held to the answers of a real Kafka with odd settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.broker.config import BrokerConfig
from odradek.broker.config.describe import ConfigSource, describe_broker, describe_topic
from odradek.broker.config.properties import parse_properties

KAFKA = json.loads(
    (Path(__file__).parent / "data" / "kafka-4.3.1-described-configs.json").read_text()
)
CONFIG = BrokerConfig.from_sources(parse_properties("\n".join(KAFKA["static"])))
OWN = {"retention.ms": " 1000 ", "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.0001"}


def plain(entries):
    """Entries in the shape of the test data, by name."""
    return {
        entry.name: [
            entry.name,
            entry.value,
            entry.read_only,
            int(entry.source),
            entry.sensitive,
            [[one.name, one.value, int(one.source)] for one in entry.synonyms],
            int(entry.type),
        ]
        for entry in entries
    }


def expected(which):
    """Kafka's answer, without the cluster-wide default that only KRaft sets."""
    answer = {entry[0]: entry for entry in KAFKA[which]}
    name, value, read_only, source, sensitive, synonyms, kind = answer["min.insync.replicas"]
    assert source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    answer[name] = [name, value, read_only, synonyms[1][2], sensitive, synonyms[1:], kind]
    return answer


BROKER = plain(describe_broker(CONFIG, 7))


@pytest.mark.parametrize("name", [entry[0] for entry in KAFKA["broker"]])
def test_broker_setting_is_described_as_kafka_does(name):
    assert BROKER[name] == expected("broker")[name]


def test_beyond_kafkas_answer_only_zookeeper_mode_is_described():
    beyond = set(BROKER) - {entry[0] for entry in KAFKA["broker"]}
    assert "zookeeper.connect" in beyond
    assert "log.retention.ms" not in beyond
    assert len(beyond) < 40


@pytest.mark.parametrize(("which", "overrides"), [("plain", {}), ("set", OWN)])
def test_topic_is_described_as_kafka_does(which, overrides):
    assert plain(describe_topic(CONFIG, overrides)) == expected(which)


def test_internal_setting_is_described_only_when_set():
    assert "internal.segment.bytes" not in plain(describe_topic(CONFIG, {}))
    described = plain(describe_topic(CONFIG, {"internal.segment.bytes": "100"}))
    assert described["internal.segment.bytes"][1] == "100"
    assert "log.initial.task.delay.ms" not in BROKER
    config = BrokerConfig.from_sources({}, {"log.initial.task.delay.ms": "5"})
    assert "log.initial.task.delay.ms" in plain(describe_broker(config, 7))


def test_keys_pick_settings_and_no_keys_are_all():
    keys = ["retention.ms", "no.such.key"]
    assert list(plain(describe_topic(CONFIG, {}, keys))) == ["retention.ms"]
    assert len(describe_topic(CONFIG, {}, [])) == len(describe_topic(CONFIG, {}))
    assert list(plain(describe_broker(CONFIG, 7, ["node.id"]))) == ["node.id"]


def test_secret_is_described_without_its_value():
    config = BrokerConfig.from_sources({"ssl.key.password": "hunter2", "unknown.secret": "hunter2"})
    assert "hunter2" not in json.dumps(plain(describe_broker(config, 1)))


def test_coarser_unit_is_a_synonym_only_from_its_own_place_on():
    config = BrokerConfig.from_sources({}, {"log.retention.ms": "5", "log.retention.hours": "1"})
    described = plain(describe_broker(config, 1))
    assert described["log.retention.ms"][5] == [
        ["log.retention.ms", "5", 4],
        ["log.retention.hours", "1", 4],
        ["log.retention.hours", "168", 5],
    ]
    assert described["log.retention.hours"][5] == [
        ["log.retention.hours", "1", 4],
        ["log.retention.hours", "168", 5],
    ]

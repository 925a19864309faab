"""Settings as described to clients, held to the answers of a real Kafka with odd settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.config import BrokerConfig
from odradek.config.describe import (
    describe_broker,
    describe_client_metrics,
    describe_cluster_defaults,
    describe_group,
    describe_topic,
)
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.config.properties import parse_properties

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
    """Kafka's answer."""
    return {entry[0]: entry for entry in KAFKA[which]}


BROKER = plain(describe_broker(CONFIG, 7))


def test_broker_settings_are_described_as_kafka_does():
    assert expected("broker") == BROKER


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("reserved.broker.max.id=5", {"reserved.broker.max.id"}),
        (
            "zookeeper.connect=x:1",
            {"zookeeper.connect", "zookeeper.set.acl", "password.encoder.secret"},
        ),
    ],
)
def test_settings_of_zookeepers_time_are_described_where_they_count(text, more):
    described = plain(describe_broker(BrokerConfig.from_sources(parse_properties(text)), 7))
    assert set(described) - set(expected("broker")) >= more
    assert ("leader.imbalance.per.broker.percentage" in described) == (len(more) > 1)


def test_what_the_first_broker_says_of_the_cluster_is_the_clusters():
    config = BrokerConfig.from_sources({"min.insync.replicas": "2"})
    name = "min.insync.replicas"
    entry = [name, "2", False, 3, False, [[name, "2", 3], [name, "2", 4], [name, "1", 5]], 3]
    assert plain(describe_broker(config, 1))[name] == entry
    assert plain(describe_cluster_defaults(config, {})) == {
        name: [name, "2", False, 3, False, [[name, "2", 3]], 3]
    }
    changed = plain(describe_cluster_defaults(config, {name: "3"}))
    assert changed == {name: [name, "3", False, 3, False, [[name, "3", 3]], 3]}


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
    assert list(describe_topic(CONFIG, {}, [])) == list(describe_topic(CONFIG, {}))
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


# -- what was changed while the broker ran ------------------------------------------------------
# The entries below are what Kafka 4.3.1 told after the same changes: name, value, whether it is
# read-only, source, whether it is a secret, synonyms with values and sources, and type.

CHANGED = DynamicConfig(BrokerConfig.from_sources({}, {"log.roll.hours": "100"}))
CHANGED.change(
    {
        "log.retention.ms": " 5000 ",
        "some.unknown": "5",
        "listener.name.plaintext.max.connections": "50",
        "compression.type": "gzip",
        "leader.replication.throttled.rate": "7",
    },
    per_broker=False,
)
CHANGED.change(
    {
        "log.retention.ms": "4000",
        "other.unknown": "5",
        "listener.name.plaintext.max.connections": "51",
        "follower.replication.throttled.rate": "8",
        "log.cleanup.policy": "compact, delete",
    },
    per_broker=True,
)

RETENTION = [
    ["log.retention.ms", "4000", 2],
    ["log.retention.ms", " 5000 ", 3],
    ["log.retention.hours", "168", 5],
]
CONNECTIONS = "listener.name.plaintext.max.connections"
LEADERS_RATE = "leader.replication.throttled.rate"


@pytest.mark.parametrize(
    "entry",
    [
        ["compression.type", "gzip", False, 3, False, [["compression.type", "gzip", 3]], 2],
        ["log.retention.ms", " 5000 ", False, 3, False, [["log.retention.ms", " 5000 ", 3]], 5],
        [CONNECTIONS, "50", True, 3, False, [[CONNECTIONS, "50", 3]], 3],
        [LEADERS_RATE, "7", False, 3, False, [[LEADERS_RATE, "7", 3]], 5],
        ["some.unknown", None, True, 3, True, [["some.unknown", None, 3]], 0],
    ],
    ids=lambda entry: entry[0],
)
def test_what_changed_for_the_cluster_is_described_as_kafka_does(entry):
    described = plain(describe_cluster_defaults(CHANGED, CHANGED.cluster_overrides))
    assert described[entry[0]] == entry
    assert len(described) == 6  # min.insync.replicas is each cluster's
    picked = describe_cluster_defaults(CHANGED, CHANGED.cluster_overrides, [entry[0], "x"])
    assert list(plain(picked)) == [entry[0]]


@pytest.mark.parametrize(
    "entry",
    [
        ["log.retention.ms", "4000", False, 2, False, RETENTION, 5],
        ["log.retention.minutes", None, True, 5, False, [], 3],
        ["log.retention.hours", "168", True, 5, False, [["log.retention.hours", "168", 5]], 3],
        ["other.unknown", None, True, 2, True, [["other.unknown", None, 2]], 0],
        ["some.unknown", None, True, 3, True, [["some.unknown", None, 3]], 0],
        [LEADERS_RATE, "7", False, 3, False, [[LEADERS_RATE, "7", 3]], 5],
        [
            "follower.replication.throttled.rate",
            "8",
            False,
            2,
            False,
            [["follower.replication.throttled.rate", "8", 2]],
            5,
        ],
        [
            CONNECTIONS,
            "51",
            True,
            2,
            False,
            [[CONNECTIONS, "51", 2], [CONNECTIONS, "50", 3], ["max.connections", "2147483647", 5]],
            3,
        ],
        [
            "max.connections",
            "2147483647",
            False,
            5,
            False,
            [["max.connections", "2147483647", 5]],
            3,
        ],
        [
            "compression.type",
            "gzip",
            False,
            3,
            False,
            [["compression.type", "gzip", 3], ["compression.type", "producer", 5]],
            2,
        ],
        [
            "log.cleanup.policy",
            "compact,delete",
            False,
            2,
            False,
            [["log.cleanup.policy", "compact, delete", 2], ["log.cleanup.policy", "delete", 5]],
            7,
        ],
    ],
    ids=lambda entry: entry[0],
)
def test_changed_broker_is_described_as_kafka_does(entry):
    assert plain(describe_broker(CHANGED, 1))[entry[0]] == entry


@pytest.mark.parametrize(
    "entry",
    [
        ["retention.ms", "4000", False, 2, False, RETENTION, 5],
        [
            "compression.type",
            "gzip",
            False,
            3,
            False,
            [["compression.type", "gzip", 3], ["compression.type", "producer", 5]],
            2,
        ],
        [
            "cleanup.policy",
            "compact,delete",
            False,
            2,
            False,
            [["log.cleanup.policy", "compact, delete", 2], ["log.cleanup.policy", "delete", 5]],
            7,
        ],
    ],
    ids=lambda entry: entry[0],
)
def test_topic_of_a_changed_broker_is_described_as_kafka_does(entry):
    assert plain(describe_topic(CHANGED, {}))[entry[0]] == entry


def test_topics_own_setting_comes_before_what_changed():
    described = plain(describe_topic(CHANGED, {"retention.ms": " 77 "}))
    assert described["retention.ms"] == [
        "retention.ms",
        "77",
        False,
        1,
        False,
        [["retention.ms", "77", 1], *RETENTION],
        5,
    ]


def test_group_is_described_as_kafka_does():
    own = {"consumer.session.timeout.ms": " 50000 ", "share.isolation.level": "read_committed"}
    described = plain(describe_group(CHANGED, own))
    name = "consumer.session.timeout.ms"
    synonyms = [[name, "50000", 8], ["group.consumer.session.timeout.ms", "45000", 5]]
    assert described[name] == [name, "50000", False, 8, False, synonyms, 3]
    name = "share.isolation.level"
    synonyms = [[name, "read_committed", 8], [name, "read_uncommitted", 5]]
    assert described[name] == [name, "read_committed", False, 8, False, synonyms, 2]
    name = "share.delivery.count.limit"
    synonyms = [["group.share.delivery.count.limit", "5", 5]]
    assert described[name] == [name, "5", False, 5, False, synonyms, 3]
    assert list(plain(describe_group(CHANGED, own, [name]))) == [name]


def test_client_metrics_are_described_as_kafka_does():
    own = {"interval.ms": " 500 ", "match": " client_id = x.* , client_source_port=1"}
    assert plain(describe_client_metrics(own)) == {
        "interval.ms": ["interval.ms", "500", False, 7, False, [["interval.ms", "500", 7]], 3],
        "match": [
            "match",
            "client_id = x.*,client_source_port=1",
            False,
            7,
            False,
            [["match", "client_id = x.*,client_source_port=1", 7]],
            7,
        ],
        "metrics": ["metrics", "", False, 5, False, [], 7],
    }

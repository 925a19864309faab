"""`odradek topics` against a broker; what it did is looked up with kafka-python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from .conftest import Odradek

pytestmark = pytest.mark.clients


@pytest.fixture
def admin(broker: Any) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as client:
        yield client


def settings_of(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])["topic"][topic]
    return {key: entry["value"] for key, entry in entries.items()}


def test_create_makes_the_topic_as_requested(
    on_broker: Odradek, admin: KafkaAdminClient, topic: str
) -> None:
    on_broker("topics", "create", topic, "--partitions", 3, "-c", "retention.ms=5000")
    (created,) = admin.describe_topics([topic])
    assert len(created["partitions"]) == 3
    assert settings_of(admin, topic) == {"retention.ms": "5000"}


def test_create_of_an_existing_topic_fails_unless_that_is_fine(
    on_broker: Odradek, topic: str
) -> None:
    on_broker("topics", "create", topic)
    refused = on_broker("topics", "create", topic, code=1)
    assert refused.err.startswith(f"odradek: error: topic {topic}: ")
    assert "exists" in refused.err
    assert "exists already" in on_broker("topics", "create", topic, "--if-not-exists").err


def test_the_brokers_reason_is_shown(on_broker: Odradek, topic: str) -> None:
    outcome = on_broker("topics", "create", topic, "-c", "no.such.setting=1", code=1)
    assert outcome.err.startswith(f"odradek: error: topic {topic}: ")
    assert "no.such.setting" in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_a_setting_without_a_value_is_no_setting(on_broker: Odradek, topic: str) -> None:
    outcome = on_broker("topics", "create", topic, "-c", "retention.ms", code=1)
    assert "write KEY=VALUE" in outcome.err


def test_list_counts_partitions_and_records(on_broker: Odradek, broker: Any, topic: str) -> None:
    on_broker("topics", "create", topic, "-p", 2)
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(7):
            producer.send(topic, b"x", partition=number % 2)
    rows = [json.loads(line) for line in on_broker("topics", "list", "--json").lines]
    assert {"topic": topic, "partitions": 2, "replicas": 1, "records": 7} in rows
    assert topic in on_broker("topics", "list").out


def test_describe_shows_partitions_and_settings(on_broker: Odradek, topic: str) -> None:
    on_broker("topics", "create", topic, "-p", 2, "-c", "max.message.bytes=12345")
    (line,) = on_broker("topics", "describe", topic, "--json").lines
    described = json.loads(line)
    assert [p["partition"] for p in described["partitions"]] == [0, 1]
    assert [(p["start"], p["end"]) for p in described["partitions"]] == [(0, 0), (0, 0)]
    assert described["configs"] == {"max.message.bytes": "12345"}
    table = on_broker("topics", "describe", topic).out
    assert topic in table
    assert "12345" in table


def test_describe_of_a_missing_topic_says_where_to_look(on_broker: Odradek, topic: str) -> None:
    outcome = on_broker("topics", "describe", topic, code=1)
    assert outcome.err == (
        f"odradek: error: topic {topic}: there is no such topic; see: odradek topics list\n"
    )


def test_add_partitions_sets_their_number(
    on_broker: Odradek, admin: KafkaAdminClient, topic: str
) -> None:
    on_broker("topics", "create", topic)
    on_broker("topics", "add-partitions", topic, "--to", 4)
    (described,) = admin.describe_topics([topic])
    assert len(described["partitions"]) == 4
    fewer = on_broker("topics", "add-partitions", topic, "--to", 2, code=1)
    assert fewer.err.startswith(f"odradek: error: topic {topic}: ")


def test_alter_sets_and_unsets_and_leaves_the_rest(
    on_broker: Odradek, admin: KafkaAdminClient, topic: str
) -> None:
    on_broker("topics", "create", topic, "-c", "retention.ms=5000", "-c", "segment.ms=6000")
    on_broker("topics", "alter", topic, "-c", "max.message.bytes=2000", "--unset", "segment.ms")
    assert settings_of(admin, topic) == {"retention.ms": "5000", "max.message.bytes": "2000"}


def test_alter_refuses_nothing_and_nonsense(on_broker: Odradek, topic: str) -> None:
    on_broker("topics", "create", topic)
    assert "nothing to change" in on_broker("topics", "alter", topic, code=1).err
    refused = on_broker("topics", "alter", topic, "-c", "retention.ms=soon", code=1)
    assert refused.err.startswith(f"odradek: error: topic {topic}: ")
    assert "retention.ms" in refused.err


def test_delete_removes_topics(on_broker: Odradek, admin: KafkaAdminClient, topic: str) -> None:
    on_broker("topics", "create", f"{topic}-a", f"{topic}-b")
    on_broker("topics", "delete", f"{topic}-a", f"{topic}-b")
    assert not {f"{topic}-a", f"{topic}-b"} & set(admin.list_topics())
    missing = on_broker("topics", "delete", f"{topic}-a", code=1)
    assert "there is no such topic" in missing.err
    on_broker("topics", "delete", f"{topic}-a", "--if-exists")

"""`odradek topics` against a broker; what it did is looked up with kafka-python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from odradek.testing import Broker, Cluster, faults

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


def test_create_returns_when_every_broker_knows_the_topic(
    odradek: Odradek, patience: None, topic: str
) -> None:
    unknown = faults.answer("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", topic=topic)
    with Cluster(3) as cluster:
        struck = [each.faults.add(unknown.times(2)) for each in cluster.brokers]
        outcome = odradek("topics", "create", topic, "-b", cluster.bootstrap_servers)
        assert (outcome.code, outcome.err) == (0, f"created topic {topic}\n")
        assert [each.strikes for each in struck] == [2, 2, 2]


def test_create_tells_of_a_broker_that_does_not_know_the_topic_in_time(
    odradek: Odradek, patience: None, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.cli.topics.command.KNOWN_MS_MAX", 2_000)
    unknown = faults.answer("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", topic=topic)
    with Cluster(2) as cluster:
        cluster.broker(2).faults.add(unknown)
        outcome = odradek("topics", "create", topic, "-b", cluster.broker(1).bootstrap_servers)
    assert outcome.code == 0
    created, late = outcome.err.splitlines()
    assert created == f"created topic {topic}"
    assert late.startswith("not all brokers serve it yet: ")


def test_create_waits_for_no_broker_that_is_down(
    odradek: Odradek, patience: None, topic: str
) -> None:
    with Cluster(3) as cluster:
        (down, *_) = (each for each in cluster.brokers if each is not cluster.controller())
        down.kill()
        # The controller may not have missed it yet: one replica of two is somewhere else.
        outcome = odradek("topics", "create", topic, "-r", 2, "-b", cluster.bootstrap_servers)
    assert (outcome.code, outcome.err) == (0, f"created topic {topic}\n")


def test_who_may_create_and_not_describe_creates(
    odradek: Odradek, topic: str, tmp_path: Path
) -> None:
    with Broker(sasl="PLAIN", acls=True) as broker:
        shop = broker.add_user()
        broker.allow(shop, "Create", topic=topic)
        settings = broker.client_settings("java", user=shop)
        config = tmp_path / "client.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        outcome = odradek(
            "topics", "create", topic, "-b", broker.bootstrap_servers, "--command-config", config
        )
        assert (outcome.code, outcome.err) == (0, f"created topic {topic}\n")
        assert broker.topic(topic).name == topic


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


@pytest.mark.parametrize("change", [("--unset", "retetion.ms"), ("-c", "retetion.ms=1")])
def test_a_setting_that_there_is_not_is_an_error_with_the_nearest(
    on_broker: Odradek, topic: str, change: tuple[str, str]
) -> None:
    on_broker("topics", "create", topic)
    outcome = on_broker("topics", "alter", topic, *change, code=1)
    assert outcome.err == (
        f"odradek: error: topic {topic} has no setting 'retetion.ms'; did you mean retention.ms?\n"
    )


def test_a_number_that_no_request_holds_is_a_usage_error(on_broker: Odradek, topic: str) -> None:
    assert "--partitions" in on_broker("topics", "create", topic, "-p", 2**31, code=2).err


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 250])
def test_a_name_that_no_topic_can_have_is_one_line(on_broker: Odradek, name: str) -> None:
    for command in (("consume",), ("produce",), ("topics", "describe")):
        outcome = on_broker(*command, name, code=1)
        assert "no topic can have this name" in outcome.err
        assert outcome.err.count("\n") == 1

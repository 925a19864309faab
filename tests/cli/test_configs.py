"""`odradek configs`: what is shown, changed and refused, against kafka-python's admin client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from .conftest import Odradek

pytestmark = pytest.mark.clients
OWN_BROKER = True

OWNERS = [
    (("--topic", "orders"), "retention.ms=3600000"),
    (("--broker", "1"), "log.cleaner.threads=2"),
    (("--broker-defaults",), "message.max.bytes=8000000"),
    (("--group", "billing"), "consumer.session.timeout.ms=50000"),
    (("--client-metrics", "slow"), "interval.ms=60000"),
]
IDS = [owner[0] for owner, _ in OWNERS]


@pytest.fixture(autouse=True)
def orders(on_broker: Odradek) -> None:
    on_broker("topics", "create", "orders", "--if-not-exists")


def described(on_broker: Odradek, owner: tuple[str, ...], *names: str) -> dict[str, Any]:
    lines = on_broker("configs", "describe", *names, *owner, "--json").lines
    return {each["setting"]: each for each in map(json.loads, lines)}


@pytest.mark.parametrize(("owner", "setting"), OWNERS, ids=IDS)
def test_a_setting_is_tried_set_and_unset(
    on_broker: Odradek, owner: tuple[str, ...], setting: str
) -> None:
    name, _, value = setting.partition("=")
    before = described(on_broker, owner)
    dry = on_broker("configs", "alter", setting, *owner, "--dry-run")
    assert "nothing was changed" in dry.err
    assert value in dry.out
    assert described(on_broker, owner) == before
    on_broker("configs", "alter", setting, *owner)
    now = described(on_broker, owner)
    assert now[name]["value"] == value
    assert {each for each in now if now[each] != before.get(each)} == {name}
    on_broker("configs", "unset", name, *owner)
    assert described(on_broker, owner) == before


@pytest.mark.parametrize(("owner", "setting"), OWNERS, ids=IDS)
@pytest.mark.parametrize("command", ["describe", "alter", "unset"])
def test_a_name_that_there_is_not_is_an_error_with_the_nearest(
    on_broker: Odradek, owner: tuple[str, ...], setting: str, command: str
) -> None:
    name = setting.partition("=")[0]
    wrong = f"{name}x"
    word = f"{wrong}=1" if command == "alter" else wrong
    outcome = on_broker("configs", command, word, *owner, code=1)
    assert f"has no setting '{wrong}'; did you mean {name}?" in outcome.err
    assert outcome.err.count("\n") == 1


def test_what_is_shown_is_what_another_client_sees(on_broker: Odradek, broker: Any) -> None:
    on_broker("topics", "create", "kept", "--if-not-exists", "-c", "retention.ms=5")
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    resource = ConfigResource(ConfigResourceType.TOPIC, "kept")
    answer = client.describe_configs([resource], config_filter="all")["topic"]["kept"]
    client.close()
    theirs = {name: entry["value"] for name, entry in answer.items()}
    lines = on_broker("configs", "describe", "--topic", "kept", "--all", "--json").lines
    assert {each["setting"]: each["value"] for each in map(json.loads, lines)} == theirs
    assert theirs["retention.ms"] == "5"


def test_a_setting_says_where_it_was_set_and_what_it_is_for(on_broker: Odradek) -> None:
    found = described(on_broker, ("--topic", "orders"), "retention.ms")["retention.ms"]
    assert found["source"] == "Kafka's default"
    assert "records are kept" in found["documentation"]
    shown = on_broker("configs", "describe", "retention.ms", "--topic", "orders", "--docs")
    assert found["documentation"][:40] in shown.out


def test_secrets_and_what_only_a_restart_changes(on_broker: Odradek) -> None:
    secret = described(on_broker, ("--broker", "1"), "ssl.keystore.password")
    assert secret["ssl.keystore.password"]["value"] is None
    outcome = on_broker("configs", "alter", "broker.id=7", "--broker", "1", code=1)
    assert "odradek: error: broker 1: the broker refused: " in outcome.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "say whose settings"),
        (("--topic", "a", "--broker", "1"), "say whose settings"),
        (("--topic", "nothing"), "there is no such topic"),
        (("--broker", "77"), "no node 77"),
    ],
)
def test_whose_settings_must_be_said(
    on_broker: Odradek, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in on_broker("configs", "describe", *arguments, code=1).err


def test_a_value_that_is_none_is_refused_before_it_is_tried(on_broker: Odradek) -> None:
    outcome = on_broker("configs", "alter", "retention.ms=x", "--topic", "orders", code=1)
    assert "retention.ms" in outcome.err
    assert "write KEY=VALUE" in on_broker("configs", "alter", "x", "--topic", "t", code=1).err

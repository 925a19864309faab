"""Broker settings that change while it runs: layers, rules, and who is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.config import BrokerConfig, ConfigError
from odradek.config.describe import describe_broker
from odradek.config.documentation import of_broker
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.config.dynamic.dynamic_rules import (
    DYNAMIC_ONLY,
    OF_ALL_LISTENERS,
    PER_BROKER,
    PER_LISTENER,
    refusal_of,
)
from odradek.config.tables.broker_table import BROKER_DEFINITIONS

KAFKA = json.loads(
    (Path(__file__).parent / "data" / "kafka-4.3.1-dynamic-configs.json").read_text()
)


def make(**static):
    texts = {name.replace("_", "."): value for name, value in static.items()}
    return DynamicConfig(BrokerConfig.from_sources(texts))


def refused(config, overrides, *, per_broker=True):
    with pytest.raises(ConfigError) as refusal:
        config.validate(overrides, per_broker=per_broker)
    return str(refusal.value)


# -- Kafka's tables ------------------------------------------------------------


def test_what_may_change_is_kafkas_table():
    ours = {name for name, definition in BROKER_DEFINITIONS.items() if definition.dynamic}
    assert ours | DYNAMIC_ONLY.keys() == set(KAFKA["all_dynamic_configs"])


def test_what_changes_for_one_broker_or_listener_only_is_kafkas_table():
    assert set(KAFKA["per_broker_configs"]) == PER_BROKER
    assert set(KAFKA["dynamic_security_configs"]) == PER_LISTENER
    assert set(KAFKA["cluster_level_listener_configs"]) == OF_ALL_LISTENERS


def test_settings_that_no_file_has_are_explained():
    assert all(of_broker(name) for name in DYNAMIC_ONLY)


# -- layers ------------------------------------------------------------


def test_first_layer_that_names_a_setting_counts():
    config = make(message_max_bytes="1000")
    assert config["message.max.bytes"] == 1000
    config.change({"message.max.bytes": "2000"}, per_broker=False)
    assert config["message.max.bytes"] == 2000
    config.change({"message.max.bytes": "3000"}, per_broker=True)
    assert config["message.max.bytes"] == 3000
    config.change({"message.max.bytes": "4000"}, per_broker=False)
    assert config["message.max.bytes"] == 3000
    config.change({}, per_broker=True)
    assert config["message.max.bytes"] == 4000
    config.change({}, per_broker=False)
    assert config["message.max.bytes"] == 1000


def test_changed_setting_wins_over_a_finer_unit_in_the_file():
    config = make(log_retention_ms="5", log_flush_scheduler_interval_ms="7")
    config.change({"log.retention.ms": "9", "log.flush.interval.ms": "11"}, per_broker=False)
    assert (config["log.retention.ms"], config["log.flush.interval.ms"]) == (9, 11)
    config.change({}, per_broker=False)
    assert (config["log.retention.ms"], config["log.flush.interval.ms"]) == (5, 7)


def test_listeners_own_setting_can_change():
    config = make()
    assert config.listener_value("PLAINTEXT", "max.connections") == 2**31 - 1
    name = "listener.name.plaintext.max.connections"
    config.change({name: "5"}, per_broker=False)
    config.change({name: "6"}, per_broker=True)
    assert config.listener_value("PLAINTEXT", "max.connections") == 6
    assert config["max.connections"] == 2**31 - 1


def test_throttles_are_unlimited_until_they_are_changed():
    config = make()
    name = "leader.replication.throttled.rate"
    assert config[name] == 2**63 - 1
    config.change({name: "5"}, per_broker=False)
    config.change({name: "6"}, per_broker=True)
    assert config[name] == config.own_value(name) == 6


def test_setting_is_set_by_any_layer():
    config = make(num_partitions="3")
    config.change({"message.max.bytes": "5"}, per_broker=False)
    config.change({"log.retention.ms": "5"}, per_broker=True)
    assert [config.is_set(name) for name in ("num.partitions", "message.max.bytes")] == [True, True]
    assert config.is_set("log.retention.ms")
    assert not config.is_set("compression.type")


def test_startup_settings_are_left_as_they_were():
    startup = BrokerConfig.from_sources({"message.max.bytes": "1000"})
    config = DynamicConfig(startup)
    config.change({"message.max.bytes": "2000"}, per_broker=True)
    assert startup["message.max.bytes"] == 1000
    assert config.static == {"message.max.bytes": "1000"}


# -- being told ------------------------------------------------------------


def test_subscribers_are_notified_of_their_settings_once_these_have_changed():
    config = make()
    reported = []
    config.subscribe(["message.max.bytes", "log.roll.ms"], lambda: reported.append("a"))
    config.subscribe(["log.retention.ms"], lambda: reported.append(config["log.retention.ms"]))
    config.change({"log.retention.ms": "5"}, per_broker=True)
    assert reported == [5]
    config.change({"log.retention.ms": "5"}, per_broker=True)
    config.change({"log.retention.ms": "5"}, per_broker=False)
    assert reported == [5]
    config.change({"log.retention.ms": "6", "message.max.bytes": "6"}, per_broker=True)
    assert reported == [5, "a", 6]


def test_subscriber_that_fails_does_not_keep_it_from_the_others(caplog):
    config = make()
    reported = []

    def fail():
        raise OSError("no")

    config.subscribe(["log.retention.ms"], fail)
    config.subscribe(["log.retention.ms"], lambda: reported.append(1))
    config.change({"log.retention.ms": "5"}, per_broker=True)
    assert reported == [1]
    assert "could not be followed" in caplog.text


# -- what is refused ------------------------------------------------------------


@pytest.mark.parametrize("per_broker", [True, False])
def test_setting_that_cannot_change_is_refused_by_name(per_broker):
    reported = refused(make(), {"auto.create.topics.enable": "false"}, per_broker=per_broker)
    assert reported == "Cannot update these configs dynamically: [auto.create.topics.enable]"


@pytest.mark.parametrize("name", sorted(PER_BROKER - PER_LISTENER))
def test_setting_of_one_broker_cannot_change_for_the_cluster(name):
    text = {"ssl.client.auth": "none"}.get(name, "1")
    assert "broker id must be specified" in (refusal_of(name, text, per_broker=False) or "")


@pytest.mark.parametrize("name", sorted(PER_LISTENER))
def test_key_stores_change_for_one_listener_only(name):
    assert refused(make(), {name: "x"}) == (
        "These security configs can be dynamically updated only per-listener using the listener "
        f"prefix: [{name}]"
    )


def test_secret_of_a_listener_changes_and_is_shown_nowhere():
    config = make()
    name = "listener.name.plaintext.ssl.keystore.password"
    config.validate({name: "hunter2"}, per_broker=True)
    config.change({name: "hunter2"}, per_broker=True)
    assert config.listener_value("PLAINTEXT", "ssl.keystore.password").secret == "hunter2"
    assert "broker id must be specified" in (refusal_of(name, "hunter2", per_broker=False) or "")
    described = list(describe_broker(config, 1))
    assert name in [entry.name for entry in described]
    assert "hunter2" not in repr(described)


@pytest.mark.parametrize(
    ("before", "allowed", "refused_values"),
    [("8", ("4", "16"), ("3", "17", "0")), ("1", ("1", "2"), ("0", "3")), ("5", ("2",), ("1",))],
)
def test_number_of_threads_at_most_doubles_or_halves(before, allowed, refused_values):
    config = make(num_io_threads=before)
    for value in allowed:
        config.validate({"num.io.threads": value}, per_broker=True)
    for value in refused_values:
        assert "num.io.threads" in refused(config, {"num.io.threads": value})


def test_what_would_not_fit_together_in_a_file_does_not_fit_when_changed():
    pair = {"log.cleaner.min.compaction.lag.ms": "6", "log.cleaner.max.compaction.lag.ms": "5"}
    assert "log.cleaner.max" in refused(make(), pair)
    config = make(log_cleaner_max_compaction_lag_ms="5")
    refused(config, {"log.cleaner.min.compaction.lag.ms": "6"})
    config.validate({"log.cleaner.min.compaction.lag.ms": "5"}, per_broker=True)


def test_listeners_may_be_named_anew_but_not_change():
    config = make(listeners="PLAINTEXT://127.0.0.1:9092")
    config.validate({"listeners": "PLAINTEXT://127.0.0.1:9092"}, per_broker=True)
    assert "advertise" in refused(config, {"listeners": "PLAINTEXT://127.0.0.1:9093"})
    config = make(
        listeners="PLAINTEXT://127.0.0.1:9092", advertised_listeners="PLAINTEXT://there:9092"
    )
    both = "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9093"
    assert "listeners come and go" in refused(config, {"listeners": both})
    assert "SSL" in refused(config, {"listener.security.protocol.map": "PLAINTEXT:SSL"})


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "127.0.0.1:5x", ":5", "127.0.0.1:", "127.0.0.1:-5", "127.0.0.1:5,x"]
)
def test_connection_limits_of_single_addresses_must_be_numbers(text):
    assert "max.connections.per.ip.overrides" in refused(
        make(), {"max.connections.per.ip.overrides": text}
    )


def test_connection_limits_of_single_addresses_are_taken():
    overrides = {"max.connections.per.ip.overrides": "127.0.0.1:5, host.example:0,::1:7"}
    make().validate({**overrides, "max.connections.per.ip": "0"}, per_broker=True)


def test_cleaner_needs_more_than_a_megabyte_for_each_thread():
    config = make(log_cleaner_threads="2")
    name = "log.cleaner.dedupe.buffer.size"
    config.validate({name: str(2 * 1024 * 1024 + 2)}, per_broker=True)
    assert name in refused(config, {name: str(2 * 1024 * 1024 + 1)})


def test_only_folders_that_there_are_can_be_cordoned():
    config = make(log_dirs="/a,/b")
    config.validate({"cordoned.log.dirs": "/b"}, per_broker=True)
    config.validate({"cordoned.log.dirs": "*"}, per_broker=True)
    assert "/c" in refused(config, {"cordoned.log.dirs": "/b,/c"})


def test_name_that_no_table_has_is_taken_as_by_kafka():
    make().validate({"some.plugins.own": "x"}, per_broker=True)


# -- what comes from the store ------------------------------------------------------------


def test_changed_setting_that_cannot_be_used_is_passed_over_and_reported(caplog):
    config = make()
    config.change(
        {"message.max.bytes": "soon", "num.partitions": "7", "log.retention.ms": "5"},
        per_broker=False,
    )
    assert config["log.retention.ms"] == 5
    assert (config["message.max.bytes"], config["num.partitions"]) == (1_048_588, 1)
    assert config.cluster_overrides == {"log.retention.ms": "5"}
    assert "message.max.bytes" in caplog.text


def test_changed_settings_that_do_not_fit_the_file_are_not_used_and_reported(caplog):
    config = make(log_cleaner_max_compaction_lag_ms="5")
    config.change({"log.cleaner.min.compaction.lag.ms": "6"}, per_broker=True)
    assert config["log.cleaner.min.compaction.lag.ms"] == 0
    assert config.broker_overrides == {}
    assert "log.cleaner.min.compaction.lag.ms" in caplog.text

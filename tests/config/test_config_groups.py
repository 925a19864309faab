"""Settings of groups and client metrics, held to Kafka's own tables and answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.common.errors import ErrorCode, KafkaError
from odradek.config import BrokerConfig
from odradek.config.definition import OffsetReset
from odradek.config.documentation import of_client_metrics, of_group
from odradek.config.dynamic.dynamic_config import DynamicConfig
from odradek.config.group_configs import (
    GroupConfigs,
    validate_client_metrics_config,
    validate_group_config,
)
from odradek.config.tables.broker_table import BROKER_DEFINITIONS
from odradek.config.tables.group_table import (
    CLIENT_METRICS_DEFINITIONS,
    GROUP_BOUNDS,
    GROUP_DEFINITIONS,
    GROUP_SYNONYMS,
)
from odradek.config.values import format_value

KAFKA = json.loads(
    (Path(__file__).parent / "data" / "kafka-4.3.1-dynamic-configs.json").read_text()
)
CONFIG = BrokerConfig.from_sources({})


def refusal(overrides, config=CONFIG):
    try:
        validate_group_config(overrides, config)
    except KafkaError as error:
        return error.code if error.message else None
    return ErrorCode.NONE


def plain(definition, synonym):
    default = format_value(definition.type, definition.default)
    low = getattr(definition.check, "low", None)
    return [definition.name, definition.type.name, default, low, synonym]


def test_group_settings_are_kafkas():
    kafka = [
        [name, kind, default, int(check[1:].split(",")[0]) if check[:1] == "[" else None, synonym]
        for name, kind, default, check, _importance, synonym in KAFKA["group"]
        if kind == "INT"
    ]
    ours = [plain(one, GROUP_SYNONYMS.get(one.name)) for one in GROUP_DEFINITIONS.values()]
    assert [one for one in ours if one[1] == "INT"] == kafka
    assert [[one[0], one[1], one[2], one[4]] for one in ours] == [
        [name, kind, default, synonym] for name, kind, default, _, _, synonym in KAFKA["group"]
    ]


def test_client_metrics_settings_are_kafkas():
    assert [plain(one, None)[:3] for one in CLIENT_METRICS_DEFINITIONS.values()] == [
        one[:3] for one in KAFKA["client_metrics"]
    ]


def test_every_setting_is_explained():
    assert all(of_group(name) for name in GROUP_DEFINITIONS)
    assert all(of_client_metrics(name) for name in CLIENT_METRICS_DEFINITIONS)


def test_every_bound_is_a_setting_of_the_broker():
    bounds = {bound for pair in GROUP_BOUNDS.values() for bound in pair if bound is not None}
    assert bounds | set(GROUP_SYNONYMS.values()) <= BROKER_DEFINITIONS.keys()


@pytest.mark.parametrize(("text", "accepted"), KAFKA["share.auto.offset.reset"])
def test_where_a_share_group_begins_is_read_as_kafka_reads_it(text, accepted):
    assert OffsetReset().accepts(text) == accepted


@pytest.mark.parametrize(("text", "code"), KAFKA["match"])
def test_clients_to_match_are_taken_or_refused_as_by_kafka(text, code):
    reported = "NONE"
    try:
        validate_client_metrics_config({"match": text})
    except KafkaError as error:
        reported = error.code.name
    assert reported == code


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("consumer.session.timeout.ms", 45_000, 60_000),
        ("consumer.heartbeat.interval.ms", 5_000, 15_000),
        ("consumer.assignment.interval.ms", 0, 15_000),
        ("share.session.timeout.ms", 45_000, 60_000),
        ("share.heartbeat.interval.ms", 5_000, 15_000),
        ("share.assignment.interval.ms", 0, 15_000),
        ("share.record.lock.duration.ms", 15_000, 60_000),
        ("share.delivery.count.limit", 2, 10),
        ("share.partition.max.record.locks", 100, 4_000),
        ("streams.session.timeout.ms", 45_000, 60_000),
        ("streams.heartbeat.interval.ms", 5_000, 15_000),
        ("streams.assignment.interval.ms", 0, 15_000),
        ("streams.num.standby.replicas", 0, 2),
    ],
)
def test_brokers_bounds_hold_for_groups(name, low, high):
    """The bounds are Kafka's defaults."""
    assert refusal({name: str(low)}) == refusal({name: str(high)}) == ErrorCode.NONE
    assert refusal({name: str(low - 1)}) == refusal({name: str(high + 1)})
    assert refusal({name: str(high + 1)}) == ErrorCode.INVALID_CONFIG


def test_session_must_outlast_a_heartbeat():
    config = BrokerConfig.from_sources(
        {"group.consumer.min.session.timeout.ms": "1", "group.consumer.session.timeout.ms": "20000"}
    )
    names = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")
    assert refusal(dict(zip(names, ("6001", "6000"), strict=True)), config) == ErrorCode.NONE
    assert (
        refusal(dict(zip(names, ("6000", "6000"), strict=True)), config) == ErrorCode.INVALID_CONFIG
    )
    assert refusal({names[0]: "5000"}, config) == ErrorCode.INVALID_CONFIG


def test_group_follows_its_own_setting_then_the_brokers():
    config = DynamicConfig(
        BrokerConfig.from_sources({"group.consumer.heartbeat.interval.ms": "6000"})
    )
    groups = GroupConfigs(config)
    name = "consumer.heartbeat.interval.ms"
    assert groups.value("g", name) == 6000
    groups.change("g", {name: "7000"})
    assert (groups.value("g", name), groups.value("other", name)) == (7000, 6000)
    assert groups.value("g", "share.isolation.level") == "read_uncommitted"
    groups.change("g", {})
    assert groups.value("g", name) == 6000
    assert groups.overrides == {}


def test_group_setting_past_a_bound_that_was_drawn_later_counts_as_the_bound():
    config = BrokerConfig.from_sources(
        {
            "group.consumer.min.session.timeout.ms": "46000",
            "group.consumer.session.timeout.ms": "46000",
        }
    )
    groups = GroupConfigs(config)
    groups.change("low", {"consumer.session.timeout.ms": "45000"})
    groups.change("high", {"consumer.session.timeout.ms": "70000"})
    name = "consumer.session.timeout.ms"
    assert (groups.value("low", name), groups.value("high", name)) == (46_000, 60_000)


def test_group_setting_in_store_that_cannot_be_used_is_passed_over():
    groups = GroupConfigs(CONFIG)
    groups.change("g", {"consumer.session.timeout.ms": "soon", "no.such": "1"})
    assert groups.value("g", "consumer.session.timeout.ms") == 45_000

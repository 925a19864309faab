"""Kafka's own `kafka-configs.sh` against the broker: every kind of resource, told and changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

Configs = Callable[..., list[str]]


@pytest.fixture
def configs(java, broker) -> Configs:
    def run(verb: str, kind: str, *arguments: str) -> list[str]:
        """Run the tool; returns the lines it prints, without the spaces around them."""
        bootstrap = ("--bootstrap-server", broker.bootstrap)
        reported = java(
            "kafka.admin.ConfigCommand", *bootstrap, verb, "--entity-type", kind, *arguments
        )
        return [line.strip() for line in reported.splitlines()]

    return run


def reported(key: str, value: str, *synonyms: str) -> str:
    return f"{key}={value} sensitive=false synonyms={{{', '.join(synonyms)}}}"


def test_topics(configs: Configs, java, broker, topic: str) -> None:
    bootstrap = ("--bootstrap-server", broker.bootstrap)
    java("org.apache.kafka.tools.TopicCommand", *bootstrap, "--create", "--topic", topic)
    named = ("topics", "--entity-name", topic)

    added = "retention.ms=86400000,cleanup.policy=[compact,delete]"
    assert configs("--alter", *named, "--add-config", added) == [
        f"Completed updating config for topic {topic}."
    ]
    retention = reported("retention.ms", "86400000", "DYNAMIC_TOPIC_CONFIG:retention.ms=86400000")
    policy = reported(
        "cleanup.policy",
        "compact,delete",
        "DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete",
        "DEFAULT_CONFIG:log.cleanup.policy=delete",
    )
    described = configs("--describe", *named)
    assert sorted(described[1:]) == [policy, retention]
    configs("--alter", *named, "--delete-config", "cleanup.policy")
    assert configs("--describe", *named)[1:] == [retention]


def test_one_broker_and_all_of_them(configs: Configs) -> None:
    default, own = ("brokers", "--entity-default"), ("brokers", "--entity-name", "1")

    configs("--alter", *default, "--add-config", "log.retention.ms=99")
    configs("--alter", *own, "--add-config", "log.retention.ms=98")
    of_all = "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=99"
    # A cluster of 4.3 has this one from its beginning on, for eligible leader replicas (KIP-966).
    insync = "DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1"
    assert sorted(configs("--describe", *default)[1:]) == [
        reported("log.retention.ms", "99", of_all),
        reported("min.insync.replicas", "1", insync),
    ]
    mine = "DYNAMIC_BROKER_CONFIG:log.retention.ms=98"
    static = "DEFAULT_CONFIG:log.retention.hours=168"
    assert configs("--describe", *own)[1:] == [
        reported("log.retention.ms", "98", mine, of_all, static)
    ]
    configs("--alter", *own, "--delete-config", "log.retention.ms")
    configs("--alter", *default, "--delete-config", "log.retention.ms")
    assert configs("--describe", *own)[1:] == []
    everything = configs("--describe", *own, "--all")
    assert reported("log.retention.hours", "168", static) in everything


def test_loggers(configs: Configs) -> None:
    named = ("broker-loggers", "--entity-name", "1")

    configs("--alter", *named, "--add-config", "root=ERROR,odradek.broker=DEBUG")
    described = configs("--describe", *named)
    assert reported("root", "ERROR") in described
    assert reported("odradek.broker", "DEBUG") in described
    configs("--alter", *named, "--add-config", "root=WARN", "--delete-config", "odradek.broker")
    described = configs("--describe", *named)
    assert reported("odradek.broker", "WARN") in described


def test_groups_and_client_metrics(configs: Configs, topic: str) -> None:
    group, metrics = f"group-{topic}", f"metrics-{topic}"

    configs(
        *("--alter", "groups", "--entity-name", group),
        *("--add-config", "consumer.session.timeout.ms=50000"),
    )
    described = configs("--describe", "groups")
    at = described.index(f"Dynamic configs for group {group} are:")
    assert described[at + 1] == reported(
        "consumer.session.timeout.ms",
        "50000",
        "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000",
        "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000",
    )
    configs(
        *("--alter", "client-metrics", "--entity-name", metrics),
        *("--add-config", "interval.ms=5000"),
    )
    described = configs("--describe", "client-metrics")
    at = described.index(f"Dynamic configs for client-metric {metrics} are:")
    source = "DYNAMIC_CLIENT_METRICS_CONFIG:interval.ms=5000"
    assert described[at + 1] == reported("interval.ms", "5000", source)

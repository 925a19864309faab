"""AlterConfigs and IncrementalAlterConfigs: answers as Kafka's, and changes that are in force.

The answers in `support.config_cases` were observed from Kafka 4.3.1.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import pytest
from support.config_cases import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CASES,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    OWN,
    SET,
    SUBTRACT,
    TOPIC,
    TOPIC_NAME,
    Change,
)

from odradek.broker.dynamic_config.config_admin import ALTERATIONS_MAX
from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages

Resource = tuple[int, str, Sequence[Change]]


@pytest.fixture(autouse=True)
def kept_levels() -> Iterator[None]:
    """Loggers are this process's: put their levels back."""
    names = [None, *logging.root.manager.loggerDict]
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    for name in [None, *logging.root.manager.loggerDict]:
        logging.getLogger(name).setLevel(levels.get(name, logging.NOTSET))


async def alter(bench, *resources: Resource, version: int = 1, validate_only: bool = False):
    """One IncrementalAlterConfigs; returns the codes."""
    request = messages.IncrementalAlterConfigsRequest
    answer = await bench.client.call(
        request(
            resources=[
                request.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        request.AlterableConfig(
                            name=change[0],
                            config_operation=change[1],
                            value=change[2] if len(change) == 3 else None,
                        )
                        for change in changes
                    ],
                )
                for kind, name, changes in resources
            ],
            validate_only=validate_only,
        ),
        version,
    )
    named = [(one.resource_type, one.resource_name) for one in answer.responses]
    assert named == [(kind, name) for kind, name, _ in resources]
    assert not any(one.error_message for one in answer.responses if not one.error_code)
    return [one.error_code for one in answer.responses]


async def replace(bench, *resources, version: int = 2, validate_only: bool = False):
    """One AlterConfigs; returns the codes."""
    request = messages.AlterConfigsRequest
    answer = await bench.client.call(
        request(
            resources=[
                request.AlterConfigsResource(
                    resource_type=kind,
                    resource_name=name,
                    configs=[
                        request.AlterableConfig(name=key, value=value)
                        for key, value in settings.items()
                    ],
                )
                for kind, name, settings in resources
            ],
            validate_only=validate_only,
        ),
        version,
    )
    return [one.error_code for one in answer.responses]


async def describe(bench, kind: int, name: str, key: str) -> tuple[str | None, int]:
    """A setting's value and source."""
    request = messages.DescribeConfigsRequest
    answer = await bench.client.call(
        request(
            resources=[
                request.DescribeConfigsResource(
                    resource_type=kind, resource_name=name, configuration_keys=[key]
                )
            ],
            include_synonyms=False,
            include_documentation=False,
        ),
        4,
    )
    (entry,) = answer.results[0].configs
    return entry.value, entry.config_source


def log_config(bench, topic: str):
    return bench.broker.replica_manager.partition_or_error(TopicPartition(topic, 0)).log.config


# -- answers ------------------------------------------------------------


async def test_changes_are_answered_with_kafkas_codes(bench) -> None:
    await bench.create_topic("orders", retention_ms="5000")
    own = str(bench.broker.broker_id)
    differing = []
    for case in CASES:
        name = case.name.replace(OWN, own).replace(TOPIC_NAME, "orders")
        (code,) = await alter(bench, (case.kind, name, case.changes))
        if code != case.odradek:
            differing.append((case, code))
        back = [(change[0], DELETE) for change in case.changes if change[1] != DELETE]
        if code == ErrorCode.NONE and case.kind != BROKER_LOGGER and back:
            assert await alter(bench, (case.kind, name, back)) == [ErrorCode.NONE]
    assert differing == []


@pytest.mark.parametrize("version", [0, 1])
async def test_single_settings_are_changed_in_every_version(bench, version: int) -> None:
    await bench.create_topic("orders", retention_ms="5000")
    await bench.create_topic("clicks")
    assert await alter(
        bench,
        (TOPIC, "orders", [("segment.bytes", SET, "2000000"), ("retention.ms", DELETE)]),
        (TOPIC, "clicks", [("cleanup.policy", APPEND, "compact")]),
        version=version,
    ) == [ErrorCode.NONE, ErrorCode.NONE]
    cache = bench.broker.metadata_cache
    assert cache.topic_config("orders") == {"segment.bytes": "2000000"}
    assert cache.topic_config("clicks") == {"cleanup.policy": "delete,compact"}
    await alter(bench, (TOPIC, "clicks", [("cleanup.policy", SUBTRACT, "delete")]))
    assert cache.topic_config("clicks") == {"cleanup.policy": "compact"}


async def test_resource_changes_as_a_whole_or_not_at_all(bench) -> None:
    await bench.create_topic("orders", retention_ms="5000")
    changes = [("segment.bytes", SET, "2000000"), ("retention.ms", SET, "soon")]
    assert await alter(bench, (TOPIC, "orders", changes)) == [ErrorCode.INVALID_CONFIG]
    assert bench.broker.metadata_cache.topic_config("orders") == {"retention.ms": "5000"}


async def test_each_resource_of_a_request_fares_on_its_own(bench) -> None:
    await bench.create_topic("orders")
    own = str(bench.broker.broker_id)
    assert await alter(
        bench,
        (TOPIC, "orders", [("retention.ms", SET, "5")]),
        (BROKER, own, [("log.retention.ms", SET, "x")]),
        (GROUP, "g", [("nope", SET, "6")]),
        (CLIENT_METRICS, "sub", [("interval.ms", SET, "6000")]),
        (BROKER_LOGGER, own, [("root", SET, "ERROR")]),
    ) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.NONE,
        ErrorCode.NONE,
    ]


async def test_resource_named_twice_is_not_changed(bench) -> None:
    await bench.create_topic("orders", retention_ms="5000")
    await bench.create_topic("clicks")
    change = [("retention.ms", SET, "7")]
    resources = [(TOPIC, name, change) for name in ("orders", "clicks", "orders")]
    assert await alter(bench, *resources) == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]
    assert bench.broker.metadata_cache.topic_config("orders") == {"retention.ms": "5000"}


async def test_request_for_nothing_is_answered_with_nothing(bench) -> None:
    assert await alter(bench) == await replace(bench) == []


async def test_changes_may_be_tried_out(bench) -> None:
    await bench.create_topic("orders", retention_ms="5000")
    own = str(bench.broker.broker_id)
    level = logging.getLogger("odradek.broker").level
    good = [
        (TOPIC, "orders", [("retention.ms", SET, "7")]),
        (BROKER, own, [("log.retention.ms", SET, "7")]),
        (BROKER, "", [("log.retention.ms", SET, "7")]),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "50000")]),
        (CLIENT_METRICS, "m", [("interval.ms", SET, "500")]),
        (BROKER_LOGGER, own, [("odradek.broker", SET, "TRACE")]),
    ]
    bad = [(kind, name, [(changes[0][0], SET, "x")]) for kind, name, changes in good]
    assert await alter(bench, *good, validate_only=True) == [ErrorCode.NONE] * 6
    assert await alter(bench, *bad, validate_only=True) == [
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_CONFIG,
        ErrorCode.INVALID_CONFIG,
    ]
    broker = bench.broker
    assert broker.metadata_cache.topic_config("orders") == {"retention.ms": "5000"}
    assert broker.config["log.retention.ms"] == 604_800_000
    assert not broker.group_configs.overrides
    assert not broker.context.client_metrics.overrides
    assert logging.getLogger("odradek.broker").level == level


@pytest.mark.parametrize("version", range(3))
async def test_all_settings_are_replaced_in_every_version(bench, version: int) -> None:
    await bench.create_topic("orders", retention_ms="5000")
    config = bench.broker.metadata_cache.topic_config
    assert await replace(bench, (TOPIC, "orders", {"retention.bytes": "7"}), version=version) == [
        ErrorCode.NONE
    ]
    assert config("orders") == {"retention.bytes": "7"}
    assert await replace(bench, (TOPIC, "orders", {})) == [ErrorCode.NONE]
    assert config("orders") == {}


async def test_replacements_are_answered_with_kafkas_codes(bench) -> None:
    """Observed from Kafka 4.3.1, but for min.insync.replicas, which KRaft keeps."""
    await bench.create_topic("orders", retention_ms="5000")
    own = str(bench.broker.broker_id)
    expected = [
        (TOPIC, "orders", {"nope": "5"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", {"retention.ms": None}, ErrorCode.INVALID_REQUEST),
        (TOPIC, "absent", {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", {}, ErrorCode.INVALID_REQUEST),
        (BROKER, own, {"log.retention.ms": "5", "log.roll.ms": "70000"}, ErrorCode.NONE),
        (BROKER, own, {"num.partitions": "5"}, ErrorCode.INVALID_REQUEST),
        (BROKER, "7", {"log.retention.ms": "5"}, ErrorCode.INVALID_REQUEST),
        (BROKER, own, {"log.roll.ms": "60000"}, ErrorCode.NONE),
        (BROKER, "", {"log.retention.ms": None}, ErrorCode.INVALID_REQUEST),
        (BROKER, own, {"some.unknown": "5"}, ErrorCode.NONE),
        (BROKER_LOGGER, own, {"root": "INFO"}, ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "sub", {"interval.ms": "5000"}, ErrorCode.NONE),
        (CLIENT_METRICS, "sub", {"interval.ms": "5"}, ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "sub", {"nope": "5"}, ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", {}, ErrorCode.INVALID_REQUEST),
        (GROUP, "g", {"consumer.session.timeout.ms": "46000"}, ErrorCode.NONE),
        (GROUP, "g", {"consumer.session.timeout.ms": "6"}, ErrorCode.INVALID_CONFIG),
        (GROUP, "", {}, ErrorCode.INVALID_REQUEST),
        (GROUP, "g", {}, ErrorCode.NONE),
        (0, "x", {}, ErrorCode.INVALID_REQUEST),
        (99, "x", {}, ErrorCode.INVALID_REQUEST),
    ]
    for *resource, code in expected:
        assert await replace(bench, tuple(resource)) == [code], resource
    assert bench.broker.metadata_cache.topic_config("orders") == {"retention.ms": "5000"}
    assert bench.broker.config.broker_overrides == {"some.unknown": "5"}


async def test_changing_settings_needs_permission(bench, monkeypatch) -> None:
    await bench.create_topic("orders")
    requested = []

    def authorize(request, operation, kind, name):
        requested.append((operation, kind, name))
        return False

    bench.authorize_by(authorize)
    own = str(bench.broker.broker_id)
    resources = [(TOPIC, "orders"), (BROKER, own), (BROKER_LOGGER, own), (CLIENT_METRICS, "m")]
    assert await alter(bench, *((kind, name, []) for kind, name in [*resources, (GROUP, "g")])) == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ]
    assert requested == [
        ("ALTER_CONFIGS", "TOPIC", "orders"),
        ("ALTER_CONFIGS", "CLUSTER", "kafka-cluster"),
        ("ALTER_CONFIGS", "CLUSTER", "kafka-cluster"),
        ("ALTER_CONFIGS", "CLUSTER", "kafka-cluster"),
        ("ALTER_CONFIGS", "GROUP", "g"),
    ]


# -- in force ------------------------------------------------------------


async def test_changed_topic_has_its_logs_follow_and_new_partitions_too(bench) -> None:
    await bench.create_topic("orders")
    changes = [("segment.bytes", SET, "2000000"), ("cleanup.policy", SET, "compact")]
    await alter(bench, (TOPIC, "orders", [*changes, ("max.message.bytes", SET, "77")]))
    config = log_config(bench, "orders")
    assert (config.segment_bytes, config.max_message_bytes) == (2_000_000, 77)
    assert config.cleanup_policy == {"compact"}
    assert (
        bench.broker.controller.active.context.topic("orders").config["max.message.bytes"] == "77"
    )


async def test_changed_default_reaches_the_logs_of_topics_without_a_setting_of_their_own(
    bench,
) -> None:
    own = str(bench.broker.broker_id)
    await bench.create_topic("plain")
    await bench.create_topic("own", retention_ms="5000", max_message_bytes="5")
    await alter(
        bench,
        (BROKER, "", [("log.retention.ms", SET, "6000"), ("message.max.bytes", SET, "6")]),
        (BROKER, own, [("message.max.bytes", SET, "7"), ("min.insync.replicas", SET, "3")]),
    )
    await bench.create_topic("later")
    for name in ("plain", "later"):
        config = log_config(bench, name)
        assert (config.retention_ms, config.max_message_bytes) == (6000, 7)
        partition = bench.broker.replica_manager.partition_or_error(TopicPartition(name, 0))
        assert partition.min_insync_replicas == 3
    config = log_config(bench, "own")
    assert (config.retention_ms, config.max_message_bytes) == (5000, 5)
    assert await describe(bench, TOPIC, "plain", "retention.ms") == ("6000", 3)
    assert await describe(bench, TOPIC, "plain", "max.message.bytes") == ("7", 2)
    assert await describe(bench, TOPIC, "own", "retention.ms") == ("5000", 1)
    await alter(bench, (BROKER, own, [("message.max.bytes", DELETE)]))
    assert log_config(bench, "plain").max_message_bytes == 6
    await alter(bench, (BROKER, "", [("message.max.bytes", DELETE)]))
    assert log_config(bench, "plain").max_message_bytes == 1_048_588


async def test_topic_follows_a_default_again_when_its_own_setting_goes(bench) -> None:
    await bench.create_topic("orders", retention_ms="5000")
    await alter(bench, (BROKER, "", [("log.retention.ms", SET, "6000")]))
    await alter(bench, (TOPIC, "orders", [("retention.ms", DELETE)]))
    assert log_config(bench, "orders").retention_ms == 6000


async def test_changed_producer_expiration_reaches_the_logs(bench) -> None:
    await bench.create_topic("orders")
    await alter(bench, (BROKER, "", [("producer.id.expiration.ms", SET, "1234")]))
    assert log_config(bench, "orders").producer_id_expiration_ms == 1234


async def test_changed_group_is_what_the_coordinator_reads(bench) -> None:
    await alter(bench, (GROUP, "a/b", [("consumer.heartbeat.interval.ms", SET, "6000")]))
    groups = bench.broker.group_configs
    assert groups.value("a/b", "consumer.heartbeat.interval.ms") == 6000
    assert groups.value("other", "consumer.heartbeat.interval.ms") == 5000
    assert await describe(bench, GROUP, "a/b", "consumer.heartbeat.interval.ms") == ("6000", 8)
    assert await describe(bench, GROUP, "a/b", "consumer.session.timeout.ms") == ("45000", 5)


async def test_changed_logger_logs_and_follows_its_parent_again(bench) -> None:
    own = str(bench.broker.broker_id)
    logger = logging.getLogger("odradek.broker.dynamic_config.config_manager")
    for level, number in [("TRACE", 5), ("DEBUG", 10), ("WARN", 30), ("FATAL", 50)]:
        await alter(bench, (BROKER_LOGGER, own, [(logger.name, SET, level)]))
        assert logger.level == number
        assert await describe(bench, BROKER_LOGGER, own, logger.name) == (level, 6)
    await alter(
        bench, (BROKER_LOGGER, own, [(logger.name, DELETE), ("odradek.broker", SET, "ERROR")])
    )
    assert logger.level == logging.NOTSET
    assert await describe(bench, BROKER_LOGGER, own, logger.name) == ("ERROR", 6)


async def test_loggers_change_together_or_not_at_all(bench) -> None:
    own = str(bench.broker.broker_id)
    before = logging.getLogger("odradek").level
    changes = [("odradek", SET, "FATAL"), ("no.such", SET, "INFO")]
    assert await alter(bench, (BROKER_LOGGER, own, changes)) == [ErrorCode.INVALID_CONFIG]
    assert logging.getLogger("odradek").level == before


@pytest.mark.parametrize("version", [0, 1])
async def test_longest_names_and_values_are_refused_in_short(bench, version: int) -> None:
    """A text has at most 32,767 bytes, and so has the sentence that refuses it."""
    await bench.create_topic("orders")
    own, text = str(bench.broker.broker_id), "x" * 32_767
    resources = [
        (TOPIC, "orders", [(text, SET, "x")]),
        (TOPIC, "orders", [("retention.ms", SET, text)]),
        (TOPIC, "orders", [(text, APPEND, "x")]),
        (TOPIC, "orders", [(text, SET, None)]),
        (TOPIC, "orders", [(text, DELETE), (text, DELETE)]),
        (TOPIC, text, [("retention.ms", SET, "5")]),
        (BROKER, text, [("log.retention.ms", SET, "5")]),
        (BROKER, own, [("listeners", SET, text)]),
        (BROKER, own, [("listener.security.protocol.map", SET, text)]),
        (BROKER, own, [("max.connections.per.ip.overrides", SET, text)]),
        (BROKER, own, [("cordoned.log.dirs", SET, text)]),
        (BROKER, own, [("metric.reporters", SET, text)]),
        (BROKER, own, [(f"listener.name.{text[:32_000]}.ssl.key.password", SET, "x")]),
        (BROKER_LOGGER, own, [(text, SET, "INFO")]),
        (BROKER_LOGGER, own, [("root", SET, text)]),
        (CLIENT_METRICS, text, [(text, SET, "x")]),
        (CLIENT_METRICS, text, [("match", SET, text)]),
        (GROUP, text, [(text, SET, "x")]),
        (GROUP, text, [("share.auto.offset.reset", SET, text)]),
    ]
    for resource in resources:
        bench.client = bench.another_client()  # answers repeat long names, and stay unsent here
        (code,) = await alter(bench, resource, version=version)
        assert code in (
            ErrorCode.INVALID_CONFIG,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        )


async def test_group_may_have_the_longest_name(bench) -> None:
    name = "é" * 16_383
    change = ("consumer.heartbeat.interval.ms", SET, "6000")
    assert await alter(bench, (GROUP, name, [change])) == [ErrorCode.NONE]
    bench.client = bench.another_client()
    assert await describe(bench, GROUP, name, change[0]) == ("6000", 8)


async def test_one_resource_has_no_more_settings_altered_than_are_looked_at_in_one_go(
    bench,
) -> None:
    changes = [(f"x{number}", SET, "1") for number in range(ALTERATIONS_MAX + 1)]
    name = "many"
    await bench.create_topic(name)
    assert await alter(bench, (TOPIC, name, changes)) == [ErrorCode.INVALID_REQUEST]
    assert await alter(bench, (TOPIC, name, changes[:-1])) == [ErrorCode.INVALID_CONFIG]

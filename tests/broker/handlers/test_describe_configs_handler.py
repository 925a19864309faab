"""DescribeConfigs as clients see it: resources, errors, versions, what is left out."""

from __future__ import annotations

import pytest

from odradek.common.errors import ErrorCode
from odradek.protocol import messages

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
STATIC, DEFAULT, OF_THE_TOPIC = 4, 5, 1


def asking(*resources, synonyms=False, documentation=False):
    """A request for resources, each `(type, name)` or `(type, name, keys)`."""
    made = messages.DescribeConfigsRequest.DescribeConfigsResource
    return messages.DescribeConfigsRequest(
        resources=[
            made(
                resource_type=kind, resource_name=name, configuration_keys=keys[0] if keys else None
            )
            for kind, name, *keys in resources
        ],
        include_synonyms=synonyms,
        include_documentation=documentation,
    )


async def describe(bench, *resources, version=4, **what):
    answer = await bench.client.call(asking(*resources, **what), version)
    return answer.results


async def describe_one(bench, *resource, version=4, **what):
    (result,) = await describe(bench, resource, version=version, **what)
    assert result.error_code == ErrorCode.NONE
    return {entry.name: entry for entry in result.configs}


async def test_topic_is_described_with_its_overrides_and_their_source(bench):
    await bench.create_topic("orders", retention_ms="1000")
    configs = await describe_one(bench, TOPIC, "orders")
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == (
        "1000",
        OF_THE_TOPIC,
    )
    assert configs["segment.bytes"].value == str(2**30)
    assert configs["segment.bytes"].config_source == DEFAULT
    assert not configs["segment.bytes"].read_only


async def test_broker_is_described_by_its_own_id(bench):
    broker_id = bench.broker.broker_id
    configs = await describe_one(bench, BROKER, str(broker_id))
    assert configs["broker.id"].value == str(broker_id)
    assert configs["listeners"].config_source == STATIC
    assert configs["num.partitions"].read_only
    assert not configs["log.retention.ms"].read_only
    assert configs["ssl.keystore.password"].is_sensitive
    assert configs["ssl.keystore.password"].value is None


async def test_broker_without_a_name_is_the_clusters_dynamic_defaults(bench):
    configs = await describe_one(bench, BROKER, "")
    # As a new cluster of Kafka 4.3.1 has it (KIP-966).
    assert [(name, entry.value, entry.config_source) for name, entry in configs.items()] == [
        ("min.insync.replicas", "1", 3)
    ]


async def test_loggers_are_described_with_their_levels(bench):
    configs = await describe_one(bench, BROKER_LOGGER, str(bench.broker.broker_id))
    assert {"root", "odradek.broker", "odradek.broker.start"} <= configs.keys()
    others = {name for name in configs if name.split(".")[0] != "odradek"}
    assert (
        {"root"} <= others <= {"root", "kafka.authorizer.logger"}
    )  # the audit log has Kafka's name
    assert {entry.config_source for entry in configs.values()} == {6}
    levels = {"FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"}
    assert {entry.value for entry in configs.values()} <= levels
    assert not any(entry.read_only for entry in configs.values())


async def test_group_is_described_whether_it_is_there_or_not(bench):
    """As Kafka 4.3.1 does."""
    configs = await describe_one(bench, GROUP, "nobody", synonyms=True, documentation=True)
    assert len(configs) == 17
    entry = configs["consumer.session.timeout.ms"]
    assert (entry.value, entry.read_only, entry.config_source, entry.config_type) == (
        "45000",
        False,
        DEFAULT,
        3,
    )
    assert [(one.name, one.value, one.source) for one in entry.synonyms] == [
        ("group.consumer.session.timeout.ms", "45000", DEFAULT)
    ]
    (synonym,) = configs["share.auto.offset.reset"].synonyms
    assert (synonym.name, synonym.value, synonym.source) == (
        "share.auto.offset.reset",
        "latest",
        DEFAULT,
    )
    assert all(entry.documentation for entry in configs.values())


async def test_client_metrics_are_described_whether_they_are_there_or_not(bench):
    """As Kafka 4.3.1 does."""
    configs = await describe_one(bench, CLIENT_METRICS, "none", synonyms=True, documentation=True)
    assert {
        entry.name: (entry.value, entry.config_source, entry.config_type, entry.synonyms)
        for entry in configs.values()
    } == {
        "interval.ms": ("300000", DEFAULT, 3, []),
        "match": ("", DEFAULT, 7, []),
        "metrics": ("", DEFAULT, 7, []),
    }
    assert all(entry.documentation for entry in configs.values())


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "77", ErrorCode.INVALID_REQUEST),
        (BROKER, "first", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "77", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "first", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_resource_that_cannot_be_described_is_refused_alone(bench, kind, name, error):
    await bench.create_topic("orders")
    refused, described = await describe(bench, (kind, name), (TOPIC, "orders"))
    assert (refused.error_code, refused.resource_type, refused.resource_name) == (error, kind, name)
    assert refused.configs == []
    assert described.error_code == ErrorCode.NONE
    assert described.configs


@pytest.mark.parametrize("kind", [0, 1, 3, 127, -1])
async def test_kind_of_resource_that_does_not_exist_refuses_the_whole_request(bench, kind):
    await bench.create_topic("orders")
    results = await describe(bench, (kind, "x"), (TOPIC, "orders"))
    assert [result.error_code for result in results] == [ErrorCode.INVALID_REQUEST] * 2


async def test_keys_pick_settings_and_an_empty_list_is_all(bench):
    await bench.create_topic("orders")
    picked = await describe_one(bench, TOPIC, "orders", ["retention.ms", "no.such.key"])
    assert list(picked) == ["retention.ms"]
    everything = await describe_one(bench, TOPIC, "orders", [])
    assert everything.keys() == (await describe_one(bench, TOPIC, "orders")).keys()
    assert len(everything) == 33  # as many as Kafka 4.3.1 describes


async def test_synonyms_come_only_when_asked_for(bench):
    await bench.create_topic("orders", max_message_bytes="5000")
    key = "max.message.bytes"
    assert (await describe_one(bench, TOPIC, "orders"))[key].synonyms == []
    synonyms = (await describe_one(bench, TOPIC, "orders", synonyms=True))[key].synonyms
    assert [(one.name, one.value, one.source) for one in synonyms] == [
        ("max.message.bytes", "5000", OF_THE_TOPIC),
        ("message.max.bytes", "1048588", DEFAULT),
    ]


async def test_documentation_comes_only_when_asked_for(bench):
    await bench.create_topic("orders")
    broker_id = str(bench.broker.broker_id)
    for kind, name, key in ((TOPIC, "orders", "retention.ms"), (BROKER, broker_id, "log.dirs")):
        assert (await describe_one(bench, kind, name))[key].documentation is None
        explained = (await describe_one(bench, kind, name, documentation=True))[key]
        assert explained.documentation.endswith(".")


@pytest.mark.parametrize("version", [1, 2, 3, 4])
async def test_every_version_is_answered_with_what_it_knows(bench, version):
    await bench.create_topic("orders", retention_ms="1000")
    configs = await describe_one(bench, TOPIC, "orders", version=version, synonyms=True)
    entry = configs["retention.ms"]
    assert (entry.value, entry.config_source) == ("1000", OF_THE_TOPIC)
    assert [one.name for one in entry.synonyms] == ["retention.ms"]
    assert entry.config_type == (5 if version >= 3 else 0)


async def test_nobody_learns_settings_without_permission(bench, monkeypatch):
    await bench.create_topic("orders")
    bench.authorize_by(lambda *_: False)
    results = await describe(bench, (TOPIC, "orders"), (BROKER, str(bench.broker.broker_id)))
    assert [result.error_code for result in results] == [
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ]
    assert not any(result.configs for result in results)

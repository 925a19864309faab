"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....config.tables.broker_table import BROKER_DEFINITIONS
from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from ..scenario import NEWEST, scenario
from ..talk import Talk

TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE = 2, 4, 8
METRICS_RESOURCE, GROUP_RESOURCE = 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
BROKER_NAME = "1"
WHOLE_CLUSTER = ""

PREFIXES = (
    *("auto", "compression", "connections", "delete", "fetch", "group", "leader", "log"),
    *("max", "message", "min", "num", "offset", "offsets", "producer", "queued", "quota"),
    *("replica", "replication", "request", "socket", "transaction", "transactional", "unclean"),
)
"""Of the names of a broker's settings; others tell of its listeners, its security and KRaft."""

OF_THE_MACHINE = frozenset({"log.dir", "log.dirs"})
"""Settings whose values are folders."""

Change = tuple[str, int, str | None]
"""A setting, an operation and its value."""


def describing_configs(
    kind: int, name: str, *settings: str, include_synonyms: bool = False
) -> DescribeConfigsRequest:
    """A request for settings of a resource."""
    resource = DescribeConfigsRequest.DescribeConfigsResource
    requested = resource(
        resource_type=kind, resource_name=name, configuration_keys=list(settings) or None
    )
    return DescribeConfigsRequest(resources=[requested], include_synonyms=include_synonyms)


def changing(
    kind: int, name: str, *changes: Change, dry: bool = False
) -> IncrementalAlterConfigsRequest:
    """A request to change settings of a resource."""
    config = IncrementalAlterConfigsRequest.AlterableConfig
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            config(name=setting, config_operation=operation, value=value)
            for setting, operation, value in changes
        ],
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry)


def replacing(
    kind: int, name: str, settings: dict[str, str | None], *, dry: bool = False
) -> AlterConfigsRequest:
    """A request to give a resource these settings and no others."""
    config = AlterConfigsRequest.AlterableConfig
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[config(name=setting, value=value) for setting, value in settings.items()],
    )
    return AlterConfigsRequest(resources=[resource], validate_only=dry)


# -- DescribeConfigs -----------------------------------------------------------------------


@scenario(ApiKey.DESCRIBE_CONFIGS)
def settings_of_a_topic_are_described(talk: Talk) -> None:
    talk.create_topic(talk.name(), settings={"retention.ms": "5000"})
    talk.ask(describing_configs(TOPIC_RESOURCE, talk.name()), talk.version)


@scenario(ApiKey.DESCRIBE_CONFIGS)
def some_settings_are_described_with_synonyms(talk: Talk) -> None:
    talk.create_topic(talk.name(), settings={"retention.ms": "5000"})
    names = ("retention.ms", "segment.bytes", "cleanup.policy", "no.such.setting")
    requested = describing_configs(TOPIC_RESOURCE, talk.name(), *names, include_synonyms=True)
    if talk.version >= 3:
        requested.include_documentation = True
    talk.ask(requested, talk.version)


@scenario(
    ApiKey.DESCRIBE_CONFIGS,
    cases={
        "topic absent": (TOPIC_RESOURCE, "absent-topic"),
        "topic bad": (TOPIC_RESOURCE, "a/b"),
        "topic empty": (TOPIC_RESOURCE, ""),
        "broker absent": (BROKER_RESOURCE, "9"),
        "broker no number": (BROKER_RESOURCE, "one"),
        "logger of an absent broker": (LOGGER_RESOURCE, "9"),
        "logger of nobody": (LOGGER_RESOURCE, ""),
        "kind unknown": (77, "x"),
        "kind zero": (0, "x"),
        "group absent": (GROUP_RESOURCE, "absent-group"),
        "group empty": (GROUP_RESOURCE, ""),
        "metrics absent": (METRICS_RESOURCE, "absent"),
        "metrics empty": (METRICS_RESOURCE, ""),
    },
)
def resource_to_describe_is(talk: Talk, resource: tuple[int, str]) -> None:
    talk.ask(describing_configs(*resource), talk.version)


@scenario(
    ApiKey.DESCRIBE_CONFIGS,
    cases={
        name: name
        for name in (
            "log.retention.ms",
            "message.max.bytes",
            "num.io.threads",
            "log.cleaner.threads",
            "log.cleanup.policy",
            "group.initial.rebalance.delay.ms",
            "offsets.topic.num.partitions",
            "auto.create.topics.enable",
            "compression.type",
            "max.connections.per.ip",
            "transaction.max.timeout.ms",
            "no.such.setting",
        )
    },
)
def setting_of_the_broker_is_described(talk: Talk, name: str) -> None:
    requested = describing_configs(BROKER_RESOURCE, BROKER_NAME, name, include_synonyms=True)
    talk.ask(requested, talk.version)


@scenario(ApiKey.DESCRIBE_CONFIGS, cases={prefix: prefix for prefix in PREFIXES})
def settings_of_the_broker_are_described(talk: Talk, prefix: str) -> None:
    names = [
        name
        for name in BROKER_DEFINITIONS
        if name.startswith(f"{prefix}.") and name not in OF_THE_MACHINE
    ]
    requested = describing_configs(BROKER_RESOURCE, BROKER_NAME, *names, include_synonyms=True)
    talk.ask(requested, talk.version)


@scenario(ApiKey.DESCRIBE_CONFIGS)
def settings_of_the_cluster_are_described(talk: Talk) -> None:
    requested = describing_configs(BROKER_RESOURCE, WHOLE_CLUSTER, "log.retention.ms")
    talk.ask(requested, talk.version)


@scenario(ApiKey.DESCRIBE_CONFIGS)
def several_resources_are_described(talk: Talk) -> None:
    talk.create_topic(talk.name())
    requested = describing_configs(TOPIC_RESOURCE, talk.name(), "retention.ms")
    requested.resources += describing_configs(
        BROKER_RESOURCE, BROKER_NAME, "log.retention.ms"
    ).resources
    requested.resources += describing_configs(TOPIC_RESOURCE, "absent-topic").resources
    talk.ask(requested, talk.version)


@scenario(ApiKey.DESCRIBE_CONFIGS)
def no_resource_is_described(talk: Talk) -> None:
    talk.ask(DescribeConfigsRequest(resources=[]), talk.version)


# -- IncrementalAlterConfigs ---------------------------------------------------------------

RETENTION = "retention.ms"
POLICY = "cleanup.policy"

TOPIC_CHANGES: dict[str, Sequence[Change]] = {
    "set": [(RETENTION, SET, "6000")],
    "set twice the same": [(RETENTION, SET, "1"), (RETENTION, SET, "2")],
    "no number": [(RETENTION, SET, "soon")],
    "null": [(RETENTION, SET, None)],
    "empty": [(RETENTION, SET, "")],
    "with blanks": [(RETENTION, SET, " 7000 ")],
    "deleted": [(RETENTION, DELETE, None)],
    "deleted with a value": [(RETENTION, DELETE, "5")],
    "unknown": [("no.such.setting", SET, "5")],
    "unknown and deleted": [("no.such.setting", DELETE, None)],
    "without a name": [("", SET, "5")],
    "appended to a list": [(POLICY, APPEND, "compact")],
    "appended what is there": [(POLICY, APPEND, "delete")],
    "appended two": [(POLICY, APPEND, "compact,delete")],
    "taken from a list": [(POLICY, SUBTRACT, "delete")],
    "taken what is not there": [(POLICY, SUBTRACT, "compact")],
    "list emptied": [(POLICY, SET, "")],
    "appended to a number": [(RETENTION, APPEND, "5")],
    "taken from a number": [(RETENTION, SUBTRACT, "5")],
    "out of range": [("segment.bytes", SET, "1")],
    "in-sync replicas beyond the brokers": [("min.insync.replicas", SET, "5")],
    "lags that do not fit": [
        ("min.compaction.lag.ms", SET, "10"),
        ("max.compaction.lag.ms", SET, "5"),
    ],
    "good and bad": [(RETENTION, SET, "1"), ("segment.ms", SET, "x")],
    "tiered": [("remote.storage.enable", SET, "true")],
    "an unknown operation": [(RETENTION, 9, "5")],
    "a negative operation": [(RETENTION, -1, "5")],
    "a ratio": [("min.cleanable.dirty.ratio", SET, "0.25")],
    "replicas": [("leader.replication.throttled.replicas", SET, "0:1,1:1")],
    "all replicas": [("follower.replication.throttled.replicas", SET, "*")],
    "no replicas": [("leader.replication.throttled.replicas", SET, "x")],
    "a time type": [("message.timestamp.type", SET, "LogAppendTime")],
    "a time type in small letters": [("message.timestamp.type", SET, "logappendtime")],
    "a codec": [("compression.type", SET, "zstd")],
    "an unknown codec": [("compression.type", SET, "brotli")],
    "a level": [("compression.gzip.level", SET, "9")],
    "a level out of range": [("compression.gzip.level", SET, "10")],
    "a flag": [("preallocate", SET, "TRUE")],
    "no flag": [("preallocate", SET, "maybe")],
    "of a broker": [("log.retention.ms", SET, "5")],
    "of old": [("message.format.version", SET, "2.0")],
    "nothing": [],
}


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS, cases=TOPIC_CHANGES)
def setting_of_a_topic_is_changed(talk: Talk, changes: Sequence[Change]) -> None:
    talk.create_topic(talk.name())
    talk.ask(changing(TOPIC_RESOURCE, talk.name(), *changes, dry=True), talk.version)
    answer = talk.ask(changing(TOPIC_RESOURCE, talk.name(), *changes), talk.version)
    if answer.responses[0].error_code == 0 and changes:
        describe_when_changed(talk, changes)


def describe_when_changed(talk: Talk, changes: Sequence[Change]) -> Any:
    """Ask for what was changed once the broker has heard of it.

    A marker is changed after it: brokers hear of changes in their order.
    """
    marker = "file.delete.delay.ms"
    talk.ask(changing(TOPIC_RESOURCE, talk.name(), (marker, SET, "4321")))
    names = [marker, *(name for name, _, _ in changes)]

    def is_described(answer: Any) -> bool:
        return any(each.value == "4321" for each in answer.results[0].configs)

    return talk.settled(describing_configs(TOPIC_RESOURCE, talk.name(), *names), until=is_described)


@scenario(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    cases={
        "topic absent": (TOPIC_RESOURCE, "absent-topic"),
        "topic bad": (TOPIC_RESOURCE, "a/b"),
        "topic empty": (TOPIC_RESOURCE, ""),
        "broker absent": (BROKER_RESOURCE, "9"),
        "broker no number": (BROKER_RESOURCE, "one"),
        "logger of an absent broker": (LOGGER_RESOURCE, "9"),
        "kind unknown": (77, "x"),
        "kind zero": (0, "x"),
        "group empty": (GROUP_RESOURCE, ""),
        "metrics empty": (METRICS_RESOURCE, ""),
    },
)
def resource_to_change_is(talk: Talk, resource: tuple[int, str]) -> None:
    talk.ask(changing(*resource, (RETENTION, SET, "5")), talk.version)


BROKER_CHANGES: dict[str, Sequence[Change]] = {
    "an unknown operation": [("message.max.bytes", 9, "5")],
    "a dynamic one": [("log.cleaner.backoff.ms", SET, "16000")],
    "one of the start": [("auto.create.topics.enable", SET, "false")],
    "no number": [("message.max.bytes", SET, "x")],
    "negative": [("message.max.bytes", SET, "-1")],
    "appended to a number": [("message.max.bytes", APPEND, "5")],
    "its id": [("broker.id", SET, "5")],
    "too many threads": [("num.io.threads", SET, "99")],
    "unknown": [("some.unknown", SET, "5")],
    "deleted without being set": [("log.cleaner.threads", DELETE, None)],
    "nothing": [],
}


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS, cases=BROKER_CHANGES)
def setting_of_the_broker_is_tried(talk: Talk, changes: Sequence[Change]) -> None:
    talk.ask(changing(BROKER_RESOURCE, BROKER_NAME, *changes, dry=True), talk.version)


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS, cases=BROKER_CHANGES)
def setting_of_the_cluster_is_tried(talk: Talk, changes: Sequence[Change]) -> None:
    talk.ask(changing(BROKER_RESOURCE, WHOLE_CLUSTER, *changes, dry=True), talk.version)


@scenario(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    cases={
        "good": [("consumer.session.timeout.ms", SET, "2000")],
        "out of range": [("consumer.session.timeout.ms", SET, "5")],
        "no number": [("consumer.session.timeout.ms", SET, "x")],
        "unknown": [("no.such.setting", SET, "1")],
        "deleted": [("consumer.session.timeout.ms", DELETE, None)],
    },
)
def setting_of_a_group_is_changed(talk: Talk, changes: Sequence[Change]) -> None:
    talk.ask(changing(GROUP_RESOURCE, talk.name(), *changes), talk.version)


@scenario(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    cases={
        "interval": [("interval.ms", SET, "5000")],
        "interval out of range": [("interval.ms", SET, "5")],
        "match": [("match", SET, "client_id=a.*")],
        "match broken": [("match", SET, "client_id=(")],
        "match of nothing": [("match", SET, "colour=red")],
        "metrics": [("metrics", SET, "org.apache.kafka.")],
        "unknown": [("no.such.setting", SET, "1")],
    },
)
def setting_of_client_metrics_is_tried(talk: Talk, changes: Sequence[Change]) -> None:
    talk.ask(changing(METRICS_RESOURCE, talk.name(), *changes, dry=True), talk.version)


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def one_resource_is_changed_twice(talk: Talk) -> None:
    talk.create_topic(talk.name())
    request = changing(TOPIC_RESOURCE, talk.name(), (RETENTION, SET, "5"))
    request.resources += changing(TOPIC_RESOURCE, talk.name(), (POLICY, SET, "delete")).resources
    talk.ask(request, talk.version)


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def one_resource_of_two_is_wrong(talk: Talk) -> None:
    talk.create_topic(talk.name())
    request = changing(TOPIC_RESOURCE, talk.name(), (RETENTION, SET, "5"))
    request.resources += changing(TOPIC_RESOURCE, "absent-topic", (RETENTION, SET, "5")).resources
    talk.ask(request, talk.version)


@scenario(ApiKey.INCREMENTAL_ALTER_CONFIGS)
def no_resource_is_changed(talk: Talk) -> None:
    talk.ask(IncrementalAlterConfigsRequest(resources=[]), talk.version)


# -- AlterConfigs --------------------------------------------------------------------------


@scenario(
    ApiKey.ALTER_CONFIGS,
    cases={
        "one": {RETENTION: "8000"},
        "none": {},
        "no number": {RETENTION: "soon"},
        "null": {RETENTION: None},
        "unknown": {"no.such.setting": "1"},
        "two": {RETENTION: "8000", POLICY: "compact"},
        "a list emptied": {POLICY: ""},
    },
)
def settings_of_a_topic_are_replaced(talk: Talk, settings: dict[str, str | None]) -> None:
    talk.create_topic(talk.name(), settings={"segment.ms": "9000", RETENTION: "1"})
    talk.ask(replacing(TOPIC_RESOURCE, talk.name(), settings, dry=True), talk.version)
    answer = talk.ask(replacing(TOPIC_RESOURCE, talk.name(), settings), talk.version)
    if answer.responses[0].error_code == 0:
        describe_when_changed(talk, [("segment.ms", SET, None), (RETENTION, SET, None)])


@scenario(
    ApiKey.ALTER_CONFIGS,
    cases={
        "topic absent": (TOPIC_RESOURCE, "absent-topic"),
        "topic bad": (TOPIC_RESOURCE, "a/b"),
        "topic empty": (TOPIC_RESOURCE, ""),
        "broker absent": (BROKER_RESOURCE, "9"),
        "logger": (LOGGER_RESOURCE, BROKER_NAME),
        "kind unknown": (77, "x"),
    },
)
def resource_to_replace_settings_of_is(talk: Talk, resource: tuple[int, str]) -> None:
    talk.ask(replacing(*resource, {RETENTION: "5"}), talk.version)


@scenario(ApiKey.ALTER_CONFIGS)
def no_settings_are_replaced(talk: Talk) -> None:
    talk.ask(AlterConfigsRequest(resources=[]), talk.version)


# -- ListConfigResources -------------------------------------------------------------------


@scenario(ApiKey.LIST_CONFIG_RESOURCES)
def client_metrics_are_listed(talk: Talk) -> None:
    talk.ask(ListConfigResourcesRequest(), 0)
    if talk.version > 0:
        talk.ask(ListConfigResourcesRequest(resource_types=[METRICS_RESOURCE]), talk.version)


@scenario(
    ApiKey.LIST_CONFIG_RESOURCES,
    NEWEST,
    cases={
        "brokers": [BROKER_RESOURCE],
        "loggers": [LOGGER_RESOURCE],
        "brokers and loggers": [BROKER_RESOURCE, LOGGER_RESOURCE],
        "of no kind": [0],
        "of an unknown kind": [77],
        "of a negative kind": [-3],
    },
)
def resources_are_listed(talk: Talk, kinds: list[int]) -> None:
    talk.ask(ListConfigResourcesRequest(resource_types=kinds))


@scenario(ApiKey.LIST_CONFIG_RESOURCES, NEWEST)
def topic_is_listed_as_a_resource(talk: Talk) -> None:
    talk.create_topic(talk.name())
    answer = talk.ask(ListConfigResourcesRequest(resource_types=[TOPIC_RESOURCE]))
    mine = [each for each in answer.config_resources if each.resource_name == talk.name()]
    answer.config_resources = mine

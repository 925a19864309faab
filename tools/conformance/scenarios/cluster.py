"""ApiVersions, Metadata, DescribeTopicPartitions, DescribeCluster and FindCoordinator."""

from __future__ import annotations

from typing import Any

from ....common.sentinels import ZERO_UUID
from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    UpdateFeaturesRequest,
)
from ..scenario import NEWEST, scenario
from ..talk import GROUP, TRANSACTION, Talk
from .topics import deletion

FIRST_BATCHED_VERSION = 4
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3

# -- ApiVersions ---------------------------------------------------------------------------


@scenario(ApiKey.API_VERSIONS)
def apis_are_listed(talk: Talk) -> None:
    request = ApiVersionsRequest(client_software_name="script", client_software_version="1.0")
    talk.ask(request, talk.version)


@scenario(
    ApiKey.API_VERSIONS,
    "3-",
    cases={
        "no name": ("", "1.0"),
        "no version": ("script", ""),
        "a space in the name": ("a script", "1.0"),
        "a dash first": ("-script", "1.0"),
        "a dash last": ("script-", "1.0"),
        "other letters": ("skript\u00e9", "1.0"),
        "a slash in the version": ("script", "1/0"),
    },
)
def software_is_named(talk: Talk, software: tuple[str, str]) -> None:
    name, version = software
    talk.ask(
        ApiVersionsRequest(client_software_name=name, client_software_version=version),
        talk.version,
    )


@scenario(ApiKey.API_VERSIONS, NEWEST)
def apis_are_listed_twice(talk: Talk) -> None:
    request = ApiVersionsRequest(client_software_name="script", client_software_version="1")
    talk.ask(request)
    talk.ask(request, 0)


# -- Metadata ------------------------------------------------------------------------------


def metadata(*topics: Any, **fields: Any) -> MetadataRequest:
    """A request for topics by names (text) or ids (bytes), without creating any."""
    topic = MetadataRequest.MetadataRequestTopic
    requested = [
        topic(name=each) if isinstance(each, str) else topic(name=None, topic_id=each)
        for each in topics
    ]
    return MetadataRequest(topics=requested, **{"allow_auto_topic_creation": False, **fields})


def careful(talk: Talk, request: MetadataRequest) -> MetadataRequest:
    """The request as old versions have it, which always create topics."""
    request.allow_auto_topic_creation |= talk.version < FIRST_BATCHED_VERSION
    return request


@scenario(ApiKey.METADATA)
def topic_is_described(talk: Talk) -> None:
    talk.create_topic(talk.name(), 3)
    talk.ask(careful(talk, metadata(talk.name())), talk.version)


@scenario(ApiKey.METADATA, "1-")
def only_the_brokers_are_described(talk: Talk) -> None:
    talk.ask(careful(talk, metadata()), talk.version)


@scenario(ApiKey.METADATA, NEWEST)
def all_topics_are_described(talk: Talk) -> None:
    talk.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))


@scenario(ApiKey.METADATA, "4-")
def topic_to_describe_is_not_there(talk: Talk) -> None:
    talk.ask(metadata(talk.name("absent")), talk.version)


@scenario(
    ApiKey.METADATA, cases={"empty": "", "a slash": "a/b", "two dots": "..", "long": "n" * 250}
)
def name_to_describe_is_bad(talk: Talk, name: str) -> None:
    talk.ask(careful(talk, metadata(name)), talk.version)


@scenario(ApiKey.METADATA)
def topic_to_describe_is_named_twice(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(careful(talk, metadata(talk.name(), talk.name())), talk.version)


@scenario(ApiKey.METADATA)
def topic_is_created_by_asking(talk: Talk) -> None:
    name = talk.name()
    request = metadata(name, allow_auto_topic_creation=True)
    talk.settled(request, talk.version, until=lambda answer: bool(answer.topics[0].error_code == 0))


@scenario(ApiKey.METADATA, "12-")
def topic_is_described_by_its_id(talk: Talk) -> None:
    topic_id = talk.create_topic(talk.name())
    talk.ask(metadata(topic_id), talk.version)


@scenario(ApiKey.METADATA, "10-", cases={"unknown": b"\4" * 16, "zero": ZERO_UUID})
def id_to_describe_is_unknown(talk: Talk, topic_id: bytes) -> None:
    talk.refused(metadata(topic_id), talk.version)


@scenario(ApiKey.METADATA, "12-")
def topic_is_described_by_name_and_by_id(talk: Talk) -> None:
    topic_id = talk.create_topic(talk.name())
    talk.ask(metadata(talk.name(), topic_id), talk.version)


@scenario(ApiKey.METADATA, "10-")
def topic_to_describe_has_name_and_id(talk: Talk) -> None:
    topic_id = talk.create_topic(talk.name())
    request = metadata(topic_id)
    assert request.topics is not None
    request.topics[0].name = talk.name()
    talk.refused(request, talk.version)


@scenario(ApiKey.METADATA, "8-")
def operations_are_requested(talk: Talk) -> None:
    talk.create_topic(talk.name())
    request = metadata(talk.name(), include_topic_authorized_operations=True)
    if talk.version <= 10:
        request.include_cluster_authorized_operations = True
    talk.ask(request, talk.version)


@scenario(ApiKey.METADATA)
def internal_topic_is_described(talk: Talk) -> None:
    talk.ask(careful(talk, metadata("__consumer_offsets")), talk.version)


@scenario(ApiKey.METADATA, NEWEST)
def deleted_topic_is_described(talk: Talk) -> None:
    topic_id = talk.create_topic(talk.name())
    talk.ask(deletion(6, talk.name()))
    talk.wait_until_gone(talk.name())
    talk.ask(metadata(topic_id))


# -- DescribeTopicPartitions ---------------------------------------------------------------


def described(*names: str, limit: int = 2000, cursor: Any = None) -> DescribeTopicPartitionsRequest:
    """A request for topics, page by page."""
    topic = DescribeTopicPartitionsRequest.TopicRequest
    return DescribeTopicPartitionsRequest(
        topics=[topic(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )


def cursor_at(name: str, partition: int) -> Any:
    """Where a page begins."""
    return DescribeTopicPartitionsRequest.Cursor(topic_name=name, partition_index=partition)


@scenario(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def topics_are_described_in_order(talk: Talk) -> None:
    for suffix, partitions in (("b", 2), ("a", 3)):
        talk.create_topic(talk.name(suffix), partitions)
    talk.ask(described(talk.name("b"), talk.name("a"), talk.name("absent")))


@scenario(ApiKey.DESCRIBE_TOPIC_PARTITIONS, cases={"1": 1, "2": 2, "3": 3, "4": 4, "5": 5, "9": 9})
def pages_are_turned(talk: Talk, limit: int) -> None:
    for suffix, partitions in (("a", 3), ("b", 2)):
        talk.create_topic(talk.name(suffix), partitions)
    names = [talk.name("a"), talk.name("b")]
    cursor = talk.ask(described(*names, limit=limit)).next_cursor
    while cursor is not None:
        following = cursor_at(cursor.topic_name, cursor.partition_index)
        cursor = talk.ask(described(*names, limit=limit, cursor=following)).next_cursor


@scenario(ApiKey.DESCRIBE_TOPIC_PARTITIONS, cases={"0": 0, "-1": -1, "2001": 2001, "huge": 1 << 30})
def page_size_is_unusual(talk: Talk, limit: int) -> None:
    talk.create_topic(talk.name(), 2)
    talk.ask(described(talk.name(), limit=limit))


@scenario(
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    cases={"beyond the partitions": 7, "negative": -1, "within": 1},
)
def page_begins_at(talk: Talk, partition: int) -> None:
    talk.create_topic(talk.name(), 2)
    talk.ask(described(talk.name(), cursor=cursor_at(talk.name(), partition)))


@scenario(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
def page_begins_at_a_topic_that_was_not_requested(talk: Talk) -> None:
    talk.create_topic(talk.name("b"), 2)
    talk.ask(described(talk.name("b"), cursor=cursor_at(talk.name("a"), 0)))
    talk.ask(described(talk.name("b"), cursor=cursor_at(talk.name("c"), 0)))
    talk.ask(described(talk.name("b"), cursor=cursor_at("", 0)))


@scenario(ApiKey.DESCRIBE_TOPIC_PARTITIONS, cases={"empty": "", "a slash": "a/b"})
def page_of_a_bad_name(talk: Talk, name: str) -> None:
    talk.ask(described(name))


# -- DescribeCluster and UpdateFeatures ----------------------------------------------------


@scenario(ApiKey.DESCRIBE_CLUSTER, cases={"with operations": True, "without": False})
def cluster_is_described(talk: Talk, operations: bool) -> None:
    talk.ask(DescribeClusterRequest(include_cluster_authorized_operations=operations), talk.version)


@scenario(ApiKey.DESCRIBE_CLUSTER, "1-", cases={"controllers": 2, "nobody": 0, "unknown": 9})
def endpoints_are_of(talk: Talk, kind: int) -> None:
    talk.ask(DescribeClusterRequest(endpoint_type=kind), talk.version)


@scenario(ApiKey.DESCRIBE_CLUSTER, "2-")
def fenced_brokers_are_requested(talk: Talk) -> None:
    talk.ask(DescribeClusterRequest(include_fenced_brokers=True), talk.version)


def feature_update(
    name: str, level: int, kind: int = UPGRADE, *, version: int, dry: bool = True
) -> UpdateFeaturesRequest:
    """A request to change a feature's level, or to say whether that is possible."""
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature=name, max_version_level=level)
    if version == 0:
        update.allow_downgrade = kind != UPGRADE
        return UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=[update])
    update.upgrade_type = kind
    return UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=[update], validate_only=dry)


@scenario(
    ApiKey.UPDATE_FEATURES,
    "1-",
    cases={
        "the level that is there": ("transaction.version", 2, UPGRADE),
        "a lower level as an upgrade": ("transaction.version", 1, UPGRADE),
        "a lower level": ("transaction.version", 1, SAFE_DOWNGRADE),
        "a lower level unsafely": ("group.version", 0, UNSAFE_DOWNGRADE),
        "too high a level": ("transaction.version", 9, UPGRADE),
        "a negative level": ("transaction.version", -1, SAFE_DOWNGRADE),
        "zero as an upgrade": ("group.version", 0, UPGRADE),
        "an unknown feature": ("no.such.feature", 1, UPGRADE),
        "a feature without a name": ("", 1, UPGRADE),
        "an unknown kind": ("group.version", 0, 7),
    },
)
def feature_is_tried(talk: Talk, case: tuple[str, int, int]) -> None:
    talk.ask(feature_update(*case, version=talk.version), talk.version)


@scenario(ApiKey.UPDATE_FEATURES)
def no_feature_is_changed(talk: Talk) -> None:
    talk.ask(UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=[]), talk.version)


@scenario(ApiKey.UPDATE_FEATURES, "1-")
def one_feature_of_two_is_wrong(talk: Talk) -> None:
    request = feature_update("group.version", 1, version=talk.version)
    wrong = feature_update("no.such.feature", 1, version=talk.version)
    request.feature_updates += wrong.feature_updates
    talk.ask(request, talk.version)


# -- FindCoordinator -----------------------------------------------------------------------


def finding(version: int, *keys: str, kind: int = GROUP) -> FindCoordinatorRequest:
    """A request for coordinators, as a version has it."""
    if version < FIRST_BATCHED_VERSION:
        return FindCoordinatorRequest(key=keys[0], key_type=kind)
    return FindCoordinatorRequest(coordinator_keys=list(keys), key_type=kind)


@scenario(ApiKey.FIND_COORDINATOR)
def coordinator_of_a_group_is_found(talk: Talk) -> None:
    talk.ask(finding(talk.version, talk.name()), talk.version)


@scenario(ApiKey.FIND_COORDINATOR, "1-")
def coordinator_of_a_transaction_is_found(talk: Talk) -> None:
    talk.ask(finding(talk.version, talk.name(), kind=TRANSACTION), talk.version)


@scenario(ApiKey.FIND_COORDINATOR, "4-")
def coordinators_of_several_groups_are_found(talk: Talk) -> None:
    talk.ask(finding(talk.version, "b", "a", "", "b"), talk.version)


@scenario(ApiKey.FIND_COORDINATOR, "4-")
def no_coordinator_is_requested(talk: Talk) -> None:
    talk.ask(finding(talk.version), talk.version)


@scenario(ApiKey.FIND_COORDINATOR)
def coordinator_of_a_group_without_a_name(talk: Talk) -> None:
    talk.ask(finding(talk.version, ""), talk.version)


@scenario(ApiKey.FIND_COORDINATOR, "1-", cases={"3": 3, "-1": -1, "99": 99})
def kind_of_coordinator_is_unknown(talk: Talk, kind: int) -> None:
    talk.refused(finding(talk.version, talk.name(), kind=kind), talk.version)


@scenario(ApiKey.FIND_COORDINATOR, "1-", cases={"nothing like one": "key", "colons": "a:b:c"})
def kind_of_coordinator_is_of_share_groups(talk: Talk, key: str) -> None:
    talk.refused(finding(talk.version, key, kind=2), talk.version)

"""What two brokers may answer differently without being different: ids, times, addresses.

Every such field is named here, by itself or for one API; all others have to be equal. An id is
not passed over: the first time that one broker says this where the other says that, the two
belong together, and have to do so from then on (`IdMapping`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...common.errors import AUTHORIZATION_FAILED, ErrorCode
from ...common.sentinels import INVALID_SESSION_ID, ZERO_UUID
from ...protocol.api_keys import ApiKey

TOPIC_ID = "topic id"
MEMBER_ID = "member id"
PRODUCER_ID = "producer id"
CLUSTER_ID = "cluster id"
FETCH_SESSION = "fetch session"
CLIENT_INSTANCE_ID = "client instance id"
SUBSCRIPTION_ID = "subscription id"
LOG_DIRECTORY = "log directory"
HOST = "host"
PORT = "port"
ID_IN_TEXT = "id in a text"

EMPTY_VALUES: frozenset[Any] = frozenset({None, "", b"", -1, ZERO_UUID})
"""Values that say that there is no id; each stands for itself alone."""


ID_FIELDS: Mapping[str, str] = {
    "topic_id": TOPIC_ID,
    "member_id": MEMBER_ID,
    "producer_id": PRODUCER_ID,
    "ongoing_txn_producer_id": PRODUCER_ID,
    "v3_and_below_producer_id": PRODUCER_ID,
    "cluster_id": CLUSTER_ID,
    "client_instance_id": CLIENT_INSTANCE_ID,
    "subscription_id": SUBSCRIPTION_ID,
    "log_dir": LOG_DIRECTORY,
    "path": LOG_DIRECTORY,
    "host": HOST,
    "port": PORT,
}
"""Fields that hold an id, of requests and responses, and the kind of id."""

ID_FIELDS_OF_ONE_API: Mapping[tuple[ApiKey, str], str] = {
    (ApiKey.FETCH, "session_id"): FETCH_SESSION,
    (ApiKey.JOIN_GROUP, "leader"): MEMBER_ID,
}

OWN_FIELDS: Mapping[str, str] = {
    "documentation": "words for people; every broker has its own",
}
"""Fields of which only counts whether they say anything, and why."""

TEXT_FIELDS: frozenset[str] = frozenset({"error_message", "batch_index_error_message"})
"""Sentences that are compared word by word, but for the ids and addresses in them."""

OWN_FIELDS_OF_ONE_API: Mapping[tuple[ApiKey, str], str] = {
    (ApiKey.API_VERSIONS, "finalized_features_epoch"): "an offset of KRaft's log, or a version",
    (ApiKey.PRODUCE, "log_append_time_ms"): "the broker's clock",
    (ApiKey.DESCRIBE_PRODUCERS, "last_timestamp"): "the broker's clock, after a marker",
    (ApiKey.DESCRIBE_TRANSACTIONS, "transaction_start_time_ms"): "the broker's clock",
    (ApiKey.DESCRIBE_LOG_DIRS, "total_bytes"): "the disk's",
    (ApiKey.DESCRIBE_LOG_DIRS, "usable_bytes"): "the disk's",
}

NOTHING_SAID: frozenset[Any] = frozenset({None, "", b"", -1})


class Keyed(NamedTuple):
    """An array whose order says nothing: that of a hash table, or what was refused first.

    Attributes:
        keys: the fields by which its elements are distinguished; none: they are plain values.
        shown: whether an element's key stands in the path of a difference. For keys out of a
            fixed list, such as names of settings, that is how one of them can be explained.
    """

    keys: tuple[str, ...] = ()
    shown: bool = False


KEYED_ARRAYS: Mapping[tuple[ApiKey, str], Keyed] = {
    (ApiKey.PRODUCE, "responses"): Keyed(("name", "topic_id")),
    (ApiKey.PRODUCE, "responses[].partition_responses"): Keyed(("index",)),
    (ApiKey.METADATA, "brokers"): Keyed(("node_id",)),
    (ApiKey.METADATA, "topics"): Keyed(("name", "topic_id")),
    (ApiKey.METADATA, "topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.API_VERSIONS, "api_keys"): Keyed(("api_key",), shown=True),
    (ApiKey.API_VERSIONS, "supported_features"): Keyed(("name",), shown=True),
    (ApiKey.API_VERSIONS, "finalized_features"): Keyed(("name",), shown=True),
    (ApiKey.OFFSET_COMMIT, "topics"): Keyed(("name", "topic_id")),
    (ApiKey.OFFSET_COMMIT, "topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.OFFSET_FETCH, "topics"): Keyed(("name",)),
    (ApiKey.OFFSET_FETCH, "topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.OFFSET_FETCH, "groups[].topics"): Keyed(("name", "topic_id")),
    (ApiKey.OFFSET_FETCH, "groups[].topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.JOIN_GROUP, "members"): Keyed(("member_id",)),
    (ApiKey.DESCRIBE_GROUPS, "groups[].members"): Keyed(("member_id",)),
    (ApiKey.LIST_GROUPS, "groups"): Keyed(("group_id",)),
    (ApiKey.CREATE_TOPICS, "topics"): Keyed(("name",)),
    (ApiKey.CREATE_TOPICS, "topics[].configs"): Keyed(("name",), shown=True),
    (ApiKey.DELETE_TOPICS, "responses"): Keyed(("name", "topic_id")),
    (ApiKey.DELETE_RECORDS, "topics"): Keyed(("name",)),
    (ApiKey.DELETE_RECORDS, "topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.LIST_OFFSETS, "topics"): Keyed(("name",)),
    (ApiKey.LIST_OFFSETS, "topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "topics"): Keyed(("topic",)),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, "topics[].partitions"): Keyed(("partition",)),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_transaction"): Keyed(("transactional_id",)),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_transaction[].topic_results"): Keyed(("name",)),
    (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "results_by_transaction[].topic_results[].results_by_partition",
    ): Keyed(("partition_index",)),
    (ApiKey.ADD_PARTITIONS_TO_TXN, "results_by_topic_v3_and_below"): Keyed(("name",)),
    (
        ApiKey.ADD_PARTITIONS_TO_TXN,
        "results_by_topic_v3_and_below[].results_by_partition",
    ): Keyed(("partition_index",)),
    (ApiKey.WRITE_TXN_MARKERS, "markers[].topics"): Keyed(("name",)),
    (ApiKey.WRITE_TXN_MARKERS, "markers[].topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.TXN_OFFSET_COMMIT, "topics"): Keyed(("name",)),
    (ApiKey.TXN_OFFSET_COMMIT, "topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.DESCRIBE_CONFIGS, "results"): Keyed(("resource_type", "resource_name")),
    (ApiKey.DESCRIBE_CONFIGS, "results[].configs"): Keyed(("name",), shown=True),
    (ApiKey.ALTER_CONFIGS, "responses"): Keyed(("resource_type", "resource_name")),
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, "responses"): Keyed(("resource_type", "resource_name")),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "results"): Keyed(("topic_name",)),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, "results[].partitions"): Keyed(("partition_index",)),
    (ApiKey.DESCRIBE_LOG_DIRS, "results"): Keyed(("log_dir",)),
    (ApiKey.DESCRIBE_LOG_DIRS, "results[].topics"): Keyed(("name",)),
    (ApiKey.DESCRIBE_LOG_DIRS, "results[].topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.CREATE_PARTITIONS, "results"): Keyed(("name",)),
    (ApiKey.DELETE_GROUPS, "results"): Keyed(("group_id",)),
    (ApiKey.ELECT_LEADERS, "replica_election_results"): Keyed(("topic",)),
    (ApiKey.ELECT_LEADERS, "replica_election_results[].partition_result"): Keyed(("partition_id",)),
    (ApiKey.OFFSET_DELETE, "topics"): Keyed(("name",)),
    (ApiKey.OFFSET_DELETE, "topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.UPDATE_FEATURES, "results"): Keyed(("feature",)),
    (ApiKey.DESCRIBE_CLUSTER, "brokers"): Keyed(("broker_id",)),
    (ApiKey.DESCRIBE_PRODUCERS, "topics"): Keyed(("name",)),
    (ApiKey.DESCRIBE_PRODUCERS, "topics[].partitions"): Keyed(("partition_index",)),
    (ApiKey.DESCRIBE_PRODUCERS, "topics[].partitions[].active_producers"): Keyed(("producer_id",)),
    (ApiKey.DESCRIBE_TRANSACTIONS, "transaction_states[].topics"): Keyed(("topic",)),
    (ApiKey.DESCRIBE_TRANSACTIONS, "transaction_states[].topics[].partitions"): Keyed(),
    (ApiKey.LIST_TRANSACTIONS, "transaction_states"): Keyed(("transactional_id",)),
    (ApiKey.LIST_TRANSACTIONS, "unknown_state_filters"): Keyed(),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "assignment.topic_partitions"): Keyed(("topic_id",)),
    (ApiKey.CONSUMER_GROUP_HEARTBEAT, "assignment.topic_partitions[].partitions"): Keyed(),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members"): Keyed(("member_id",)),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members[].subscribed_topic_names"): Keyed(),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, "groups[].members[].assignment.topic_partitions"): Keyed(
        ("topic_id",)
    ),
    (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        "groups[].members[].assignment.topic_partitions[].partitions",
    ): Keyed(),
    (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        "groups[].members[].target_assignment.topic_partitions",
    ): Keyed(("topic_id",)),
    (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        "groups[].members[].target_assignment.topic_partitions[].partitions",
    ): Keyed(),
    (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, "requested_metrics"): Keyed(),
    (ApiKey.SHARE_FETCH, "responses"): Keyed(("topic_id",)),
    (ApiKey.SHARE_FETCH, "responses[].partitions"): Keyed(("partition_index",)),
    (ApiKey.SHARE_ACKNOWLEDGE, "responses"): Keyed(("topic_id",)),
    (ApiKey.SHARE_ACKNOWLEDGE, "responses[].partitions"): Keyed(("partition_index",)),
    (ApiKey.SHARE_GROUP_HEARTBEAT, "assignment.topic_partitions"): Keyed(("topic_id",)),
    (ApiKey.SHARE_GROUP_HEARTBEAT, "assignment.topic_partitions[].partitions"): Keyed(),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "groups"): Keyed(("group_id",)),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "groups[].topics"): Keyed(("topic_name",)),
    (ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, "groups[].topics[].partitions"): Keyed(
        ("partition_index",)
    ),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, "responses"): Keyed(("topic_name",)),
    (ApiKey.ALTER_SHARE_GROUP_OFFSETS, "responses[].partitions"): Keyed(("partition_index",)),
    (ApiKey.DELETE_SHARE_GROUP_OFFSETS, "responses"): Keyed(("topic_name",)),
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups"): Keyed(("group_id",)),
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups[].members"): Keyed(("member_id",)),
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups[].members[].subscribed_topic_names"): Keyed(),
    (ApiKey.SHARE_GROUP_DESCRIBE, "groups[].members[].assignment.topic_partitions"): Keyed(
        ("topic_id",)
    ),
    (
        ApiKey.SHARE_GROUP_DESCRIBE,
        "groups[].members[].assignment.topic_partitions[].partitions",
    ): Keyed(),
    (ApiKey.LIST_CONFIG_RESOURCES, "config_resources"): Keyed(("resource_type", "resource_name")),
}
"""Arrays in whatever order; the order of every other one has to be the same."""

UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![\w-])[\w-]{22}(?![\w-])")
"""A random id as Java prints it, or as Kafka does (22 characters of URL-safe Base64)."""


OWN_WORDS = re.compile(
    r"within \[-?\d+, -?\d+\]"  # of a broker's clock
    r"|127\.0\.0\.1:\d+"
    r"|(?<![\w/])(?:/[\w.-]+)+"  # a path
)
"""What stands in a sentence and is one broker's, besides random ids."""


REFUSED_REQUEST = re.compile(r"Request Request\(.*\) needs \w+ permission\.", re.DOTALL)
"""Kafka's sentence for a refusal on the cluster, which shows a Java object; stands for
`CLUSTER_REFUSAL`."""

CLUSTER_REFUSAL = AUTHORIZATION_FAILED[ErrorCode.CLUSTER_AUTHORIZATION_FAILED]


def id_kind(api_key: int, field: str) -> str | None:
    """The kind of id that a field of an API's messages holds; None: it holds no id.

    Args:
        api_key: the API.
        field: its name, in snake case.
    """
    of_api = ID_FIELDS_OF_ONE_API.get((ApiKey(api_key), field))
    return ID_FIELDS.get(field) if of_api is None else of_api


def is_own(api_key: int, field: str) -> bool:
    """Whether a field counts only by whether it says anything."""
    return field in OWN_FIELDS or (ApiKey(api_key), field) in OWN_FIELDS_OF_ONE_API


class IdMapping:
    """Which id of the one broker stands for which of the other; one to one, within a kind.

    One mapping belongs to one conversation: the answers of a scenario, or of a whole capture.
    """

    def __init__(self) -> None:
        self._actual: dict[tuple[str, Any], Any] = {}
        self._expected: dict[tuple[str, Any], Any] = {}

    def pair(self, kind: str, expected: Any, actual: Any) -> bool:
        """Whether two ids stand for the same; two that are new do from now on.

        Args:
            kind: such as `TOPIC_ID`.
            expected: of the broker that is compared with.
            actual: of the broker that is looked at.
        """
        if is_nobody(kind, expected) or is_nobody(kind, actual):
            return bool(expected == actual)
        known = self._actual.get((kind, expected))
        if known is not None:
            return bool(known == actual)
        if (kind, actual) in self._expected or _shape(expected) != _shape(actual):
            return False
        self._actual[kind, expected] = actual
        self._expected[kind, actual] = expected
        return True

    def actual(self, kind: str, expected: Any) -> Any:
        """The id that stands for another; itself while nothing is known of it."""
        return self._actual.get((kind, expected), expected)

    def pair_texts(self, expected: Any, actual: Any) -> bool:
        """Whether two sentences say the same; the ids and addresses in them are paired.

        Args:
            expected: of the broker that is compared with; None where it says nothing.
            actual: of the broker that is looked at.
        """
        if expected == actual or expected is None or actual is None:
            return bool(expected == actual)
        expected = REFUSED_REQUEST.sub(CLUSTER_REFUSAL, expected)
        expected, actual = (OWN_WORDS.sub("<own>", each) for each in (expected, actual))
        ids = zip(UUID.findall(expected), UUID.findall(actual), strict=False)
        return UUID.sub("<random>", expected) == UUID.sub("<random>", actual) and all(
            expected_id == actual_id or self.pair(ID_IN_TEXT, expected_id, actual_id)
            for expected_id, actual_id in ids
        )

    def knows(self, kind: str, expected: Any) -> bool:
        """Whether an id has its counterpart, or is none."""
        return is_nobody(kind, expected) or (kind, expected) in self._actual

    def is_taken(self, kind: str, actual: Any) -> bool:
        """Whether an id of the other broker stands for one already, or is none."""
        return is_nobody(kind, actual) or (kind, actual) in self._expected


def is_nobody(kind: str, value: Any) -> bool:
    """Whether a value says that there is no id of this kind."""
    return value in EMPTY_VALUES or (kind == FETCH_SESSION and value == INVALID_SESSION_ID)


def _shape(value: Any) -> Any:
    """What two ids must have in common: where a random part stands, and all around it."""
    if isinstance(value, str) and "/" not in value:
        return UUID.sub("<random>", value)
    return type(value)

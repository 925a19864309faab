"""The sentences in which Kafka says what is wrong, as Apache Kafka 4.3.1 answered these requests.

`make conformance` compares the texts of all its scenarios; these are the ones that people see most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from odradek.protocol import messages
from odradek.protocol.codec.message import Message
from odradek.protocol.codec.types import Array, StructType
from odradek.protocol.records.builder import build_batch
from odradek.testing.process.broker_process import BrokerProcess
from odradek.tools.conformance.requests import TIMESTAMP_MS, batch, production
from odradek.tools.conformance.scenarios.appending import LENGTH_AT, MAGIC_AT, patched
from odradek.tools.conformance.talk import PRODUCE_BY_NAME, Talk
from odradek.tools.conformance.transcript import Transcript

pytestmark = pytest.mark.clients

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, APPEND = 0, 2
JOIN, LEAVE = 0, -1
GROUP_ID, MEMBER_ID = "error-texts", "AAAAAAAAAAAAAAAAAAAAAQ"
DAY_MS = 86_400_000


class Case(NamedTuple):
    """A request and the texts in Kafka's answer to it."""

    request: Message
    texts: list[str]
    version: int | None = None

    def __str__(self) -> str:
        return f"{type(self.request).__name__}: {self.texts[0][:40]}"


def creation(name: str = "new", partitions: int = 1, factor: int = 1, **more: Any) -> Message:
    of_topic = messages.CreateTopicsRequest.CreatableTopic
    topic = of_topic(name=name, num_partitions=partitions, replication_factor=factor, **more)
    return messages.CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


def assigned(*brokers: int, index: int = 0, **counts: int) -> Message:
    assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment(
        partition_index=index, broker_ids=list(brokers)
    )
    counts = {"partitions": -1, "factor": -1, **counts}
    return creation(assignments=[assignment], **counts)


def with_setting(name: str, value: str | None) -> Message:
    setting = messages.CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
    return creation(configs=[setting])


def growth(
    count: int, topic: str = "error-texts", *, brokers: list[list[int]] | None = None
) -> Message:
    request = messages.CreatePartitionsRequest
    assignments = None
    if brokers is not None:
        assignments = [request.CreatePartitionsAssignment(broker_ids=each) for each in brokers]
    of_topic = request.CreatePartitionsTopic(name=topic, count=count, assignments=assignments)
    return request(topics=[of_topic], timeout_ms=30_000)


def altered(
    kind: int, resource: str, name: str, value: str | None, operation: int = SET
) -> Message:
    request = messages.IncrementalAlterConfigsRequest
    setting = request.AlterableConfig(name=name, config_operation=operation, value=value)
    of_resource = request.AlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=[setting]
    )
    return request(resources=[of_resource])


def described(kind: int, resource: str) -> Message:
    request = messages.DescribeConfigsRequest
    of_resource = request.DescribeConfigsResource(
        resource_type=kind, resource_name=resource, configuration_keys=None
    )
    return request(resources=[of_resource])


def heartbeat(epoch: int = JOIN, **more: Any) -> Message:
    fields: dict[str, Any] = {
        "group_id": GROUP_ID,
        "member_id": MEMBER_ID,
        "member_epoch": epoch,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["error-texts"],
        "topic_partitions": [],
    }
    return messages.ConsumerGroupHeartbeatRequest(**fields | more)


def reassignment(topic: str, index: int, replicas: list[int]) -> Message:
    request = messages.AlterPartitionReassignmentsRequest
    partition = request.ReassignablePartition(partition_index=index, replicas=replicas)
    return request(
        topics=[request.ReassignableTopic(name=topic, partitions=[partition])], timeout_ms=30_000
    )


def election(topic: str, index: int, kind: int = 0) -> Message:
    request = messages.ElectLeadersRequest
    of_topic = request.TopicPartitions(topic=topic, partitions=[index])
    return request(election_type=kind, topic_partitions=[of_topic], timeout_ms=30_000)


def deletion(**named: Any) -> Message:
    request = messages.DeleteTopicsRequest
    return request(topics=[request.DeleteTopicState(**named)], timeout_ms=30_000)


def feature(name: str, level: int, kind: int = 1) -> Message:
    request = messages.UpdateFeaturesRequest
    update = request.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return request(feature_updates=[update], timeout_ms=30_000)


NAME_RULE = "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
MANUAL = "The manual partition assignment includes"
FEATURE = "The update failed for all features since the following feature had an error: "
NEITHER = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."

CASES = [
    Case(creation("error-texts"), ["Topic 'error-texts' already exists."]),
    Case(creation("a/b"), [f"Topic name is invalid: 'a/b' {NAME_RULE}"]),
    Case(creation(""), ["Topic name is invalid: the empty string is not allowed"]),
    Case(creation(".."), ["Topic name is invalid: '..' is not allowed"]),
    Case(
        creation(partitions=0), ["Number of partitions was set to an invalid non-positive value."]
    ),
    Case(
        creation(factor=0),
        ["Replication factor must be larger than 0, or -1 to use the default value."],
    ),
    Case(
        creation(factor=2),
        [
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot"
            " be reached because only 1 broker(s) are registered or some brokers have all their "
            "log directories cordoned."
        ],
    ),
    Case(assigned(), [f"{MANUAL} an empty replica list."]),
    Case(assigned(9), [f"{MANUAL} broker 9, but no such broker is registered."]),
    Case(assigned(1, 1), [f"{MANUAL} the broker 1 more than once."]),
    Case(assigned(1, index=1), ["partitions should be a consecutive 0-based integer sequence"]),
    Case(
        assigned(1, partitions=1),
        ["A manual partition assignment was specified, but numPartitions was not set to -1."],
    ),
    Case(
        with_setting("retention.ms", "soon"),
        ["Invalid value soon for configuration retention.ms: Not a number of type LONG"],
    ),
    Case(
        with_setting("cleanup.policy", "shred"),
        [
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, "
            "delete"
        ],
    ),
    Case(
        with_setting("segment.bytes", "1"),
        ["Invalid value 1 for configuration segment.bytes: Value must be at least 1048576"],
    ),
    Case(with_setting("no.such", "1"), ["Unknown topic config name: no.such"]),
    Case(
        with_setting("retention.ms", None),
        ["Null value not supported for topic configs: retention.ms"],
    ),
    Case(growth(1), ["Topic already has 1 partition(s)."]),
    Case(
        growth(0),
        ["The topic error-texts currently has 1 partition(s); 0 would not be an increase."],
    ),
    Case(
        growth(2, brokers=[[1], [1]]),
        ["Attempted to add 1 additional partition(s), but only 2 assignment(s) were specified."],
    ),
    Case(growth(2, brokers=[[9]]), [f"{MANUAL} broker 9, but no such broker is registered."]),
    Case(altered(TOPIC, "absent", "retention.ms", "1"), ["The topic 'absent' does not exist."]),
    Case(altered(TOPIC, "", "retention.ms", "1"), ["Default topic resources are not allowed."]),
    Case(
        altered(TOPIC, "error-texts", "retention.ms", "1", APPEND),
        ["Can't APPEND to key retention.ms because its type is not LIST."],
    ),
    Case(
        altered(TOPIC, "error-texts", "retention.ms", None),
        ["Null value not supported for : retention.ms"],
    ),
    Case(
        altered(TOPIC, "error-texts", "compression.gzip.level", "10"),
        [
            "Invalid value 10 for configuration compression.gzip.level: Value must be between 1 "
            "and 9 or equal to -1"
        ],
    ),
    Case(
        altered(TOPIC, "error-texts", "preallocate", "maybe"),
        [
            "Invalid value maybe for configuration preallocate: Expected value to be either true "
            "or false"
        ],
    ),
    Case(
        altered(BROKER, "1", "message.max.bytes", "1", APPEND),
        ["Config value append is not allowed for config key: message.max.bytes"],
    ),
    Case(
        altered(BROKER, "1", "broker.id", "1"),
        ["Cannot update these configs dynamically: [broker.id]"],
    ),
    Case(
        altered(BROKER, "9", "message.max.bytes", "1"),
        ["Unexpected broker id, expected 1, but received 9"],
    ),
    Case(
        altered(BROKER_LOGGER, "9", "root", "INFO"),
        ["Unexpected node id. Expected 1, but received 9"],
    ),
    Case(
        altered(BROKER, "one", "message.max.bytes", "1"),
        ["Node id must be an integer, but it is: one"],
    ),
    Case(
        altered(CLIENT_METRICS, "m", "interval.ms", "5"),
        ["Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)"],
    ),
    Case(
        altered(CLIENT_METRICS, "m", "match", "colour=red"),
        ["Illegal client matching pattern: colour=red"],
    ),
    Case(
        altered(GROUP, "g", "consumer.session.timeout.ms", "5"),
        [
            "consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms"
        ],
    ),
    Case(altered(77, "x", "y", "z"), ["Unknown resource type 77"]),
    Case(
        described(BROKER, "9"), ["Unexpected broker id, expected 1 or empty string, but received 9"]
    ),
    Case(described(BROKER_LOGGER, "9"), ["Unexpected broker id, expected 1 but received 9"]),
    Case(described(GROUP, ""), ["Group name must not be empty"]),
    Case(deletion(name="absent"), ["This server does not host this topic-partition."]),
    Case(deletion(name=None), ["Neither topic name nor id were specified."]),
    Case(deletion(name=None, topic_id=b"\1" * 16), ["This server does not host this topic ID."]),
    Case(reassignment("absent", 0, [1]), ["Unable to find a topic named absent."]),
    Case(reassignment("error-texts", 7, [1]), ["Unable to find partition error-texts:7."]),
    Case(
        reassignment("error-texts", 0, [9]),
        [f"{MANUAL} broker 9, but no such broker is registered."],
    ),
    Case(election("absent", 0), ["No such topic as absent"]),
    Case(election("error-texts", 7), ["No such partition as error-texts-7"]),
    Case(election("error-texts", 0), ["Leader election not needed for topic partition."]),
    Case(election("error-texts", 0, 2), ["Unknown election type 2"]),
    Case(
        messages.DescribeClusterRequest(endpoint_type=2),
        [
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER"
        ],
    ),
    Case(
        feature("no.such", 1),
        [
            f"{FEATURE}Invalid update version 1 for feature no.such. Local controller 1 does not "
            "support this feature."
        ],
    ),
    Case(
        feature("transaction.version", 9),
        [
            f"{FEATURE}Invalid update version 9 for feature transaction.version. Local controller "
            "1 only supports versions 0-2"
        ],
    ),
    Case(heartbeat(group_id=""), ["GroupId can't be empty."]),
    Case(
        heartbeat(rebalance_timeout_ms=-1),
        ["RebalanceTimeoutMs must be provided in first request."],
    ),
    Case(heartbeat(topic_partitions=None), ["TopicPartitions must be empty when (re-)joining."]),
    Case(heartbeat(subscribed_topic_names=None), [NEITHER]),
    Case(heartbeat(-3), ["MemberEpoch is invalid."]),
    Case(heartbeat(5), ["Consumer group error-texts not found."]),
    Case(heartbeat(LEAVE), ["Group error-texts not found."]),
    Case(
        heartbeat(server_assignor="magic"),
        ["ServerAssignor magic is not supported. Supported assignors: uniform, range."],
    ),
    Case(
        heartbeat(subscribed_topic_regex="a(b"),
        ["SubscribedTopicRegex `a(b` is not a valid regular expression: missing closing )."],
    ),
    Case(messages.ConsumerGroupDescribeRequest(group_ids=["absent"]), ["Group absent not found."]),
]
"""What Kafka 4.3.1 answered as broker and controller 1 of one."""


@pytest.fixture(scope="module")
def talk(broker: BrokerProcess) -> Iterator[Talk]:
    with Talk(broker.bootstrap, "error-texts", 0, Transcript()) as talk:
        talk.create_topic(talk.name())
        talk.wait_for_coordinator(GROUP_ID)
        yield talk


@pytest.mark.parametrize("case", CASES, ids=str)
def test_text_is_kafkas(talk: Talk, case: Case) -> None:
    assert list(texts_of(talk.ask(case.request, case.version))) == case.texts


def test_refused_records_are_named_as_kafka_names_them(talk: Talk) -> None:
    compacted, timely = talk.name("compacted"), talk.name("timely")
    talk.create_topic(compacted, settings={"cleanup.policy": "compact"})
    talk.create_topic(timely, settings={"message.timestamp.before.max.ms": str(DAY_MS)})
    keyless = build_batch([(key, b"v", TIMESTAMP_MS, []) for key in (b"k", None, b"k", None)])
    reason = f"Compacted topic cannot accept message without key in topic partition {compacted}-0"
    shown = ", ".join(f"RecordError(batchIndex={at}, message='{reason}')" for at in (1, 3))
    assert list(
        texts_of(talk.ask(production(compacted, {0: bytes(keyless)}), PRODUCE_BY_NAME))
    ) == [
        reason,
        reason,
        "One or more records have been rejected due to 2 record errors in total, and only showing "
        f"the first three errors at most: [{shown}]",
    ]
    answer = talk.ask(production(timely, {0: batch(b"v")}), PRODUCE_BY_NAME)
    of_record, of_batch = texts_of(answer)
    assert of_batch == "One or more records have been rejected due to invalid timestamp"
    assert of_record.startswith(
        f"Timestamp {TIMESTAMP_MS} of message with offset 0 is out of range. The timestamp should "
        "be within ["
    )


def test_bytes_that_are_no_batch_are_named_as_kafka_names_them(talk: Talk) -> None:
    def text_of(at: int, layout: str, value: int) -> list[str]:
        records = patched(batch(b"v"), at, layout, value)
        return list(texts_of(talk.ask(production(talk.name(), {0: records}), PRODUCE_BY_NAME)))

    assert text_of(MAGIC_AT, ">b", -1) == ["Invalid magic found in record: -1"]
    assert text_of(LENGTH_AT, ">i", 10) == [
        "Record size 10 is less than the minimum record overhead (14)"
    ]


def texts_of(answer: Any) -> Iterator[str]:
    """Every error text in an answer, those of its parts before its own."""
    for field in type(answer).fields:
        held = getattr(answer, field.name)
        element = field.type.element if isinstance(field.type, Array) else field.type
        if isinstance(element, StructType) and held is not None:
            for each in held if isinstance(field.type, Array) else [held]:
                yield from texts_of(each)
        elif field.name.endswith("error_message") and held:
            yield held

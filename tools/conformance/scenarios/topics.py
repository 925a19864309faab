"""CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords."""

from __future__ import annotations

from typing import Any

from ....common.sentinels import ZERO_UUID
from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
)
from ..requests import TIMEOUT_MS
from ..scenario import NEWEST, scenario
from ..talk import Talk

LONGEST_NAME = 249
TOPIC_SETTINGS: dict[str, str | None] = {
    "retention.ms": "5000",
    "cleanup.policy": "compact,delete",
}


def creation(*topics: Any, **fields: Any) -> CreateTopicsRequest:
    """A request to create topics."""
    return CreateTopicsRequest(topics=list(topics), timeout_ms=TIMEOUT_MS, **fields)


def new_topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    assignments: dict[int, list[int]] | None = None,
    settings: dict[str, str | None] | None = None,
) -> CreateTopicsRequest.CreatableTopic:
    """A topic to create."""
    assigned = CreateTopicsRequest.CreatableReplicaAssignment
    setting = CreateTopicsRequest.CreatableTopicConfig
    return CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            assigned(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignments or {}).items()
        ],
        configs=[setting(name=key, value=value) for key, value in (settings or {}).items()],
    )


# -- CreateTopics --------------------------------------------------------------------------


@scenario(ApiKey.CREATE_TOPICS)
def topic_is_created(talk: Talk) -> None:
    talk.ask(creation(new_topic(talk.name(), 3)), talk.version)
    talk.wait_for_topic(talk.name(), 3)


@scenario(ApiKey.CREATE_TOPICS)
def topic_is_there_already(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(creation(new_topic(talk.name())), talk.version)


@scenario(ApiKey.CREATE_TOPICS)
def creation_is_only_validated(talk: Talk) -> None:
    talk.ask(creation(new_topic(talk.name(), 2), validate_only=True), talk.version)
    talk.ask(creation(new_topic(talk.name(), 2)), talk.version)


@scenario(ApiKey.CREATE_TOPICS)
def topic_takes_settings(talk: Talk) -> None:
    topic = new_topic(talk.name(), settings=TOPIC_SETTINGS)
    talk.ask(creation(topic), talk.version)


@scenario(ApiKey.CREATE_TOPICS)
def replicas_are_assigned_by_hand(talk: Talk) -> None:
    topic = new_topic(talk.name(), -1, -1, assignments={0: [1], 1: [1]})
    talk.ask(creation(topic), talk.version)
    talk.wait_for_topic(talk.name(), 2)


@scenario(ApiKey.CREATE_TOPICS, "4-")
def broker_chooses_partitions_and_replicas(talk: Talk) -> None:
    talk.ask(creation(new_topic(talk.name(), -1, -1)), talk.version)


@scenario(ApiKey.CREATE_TOPICS)
def one_topic_of_three_is_refused(talk: Talk) -> None:
    topics = [new_topic(talk.name("a")), new_topic("not/a/name"), new_topic(talk.name("b"))]
    talk.ask(creation(*topics), talk.version)


@scenario(ApiKey.CREATE_TOPICS)
def nothing_is_created(talk: Talk) -> None:
    talk.ask(creation(), talk.version)


@scenario(ApiKey.CREATE_TOPICS)
def topic_is_named_twice(talk: Talk) -> None:
    talk.ask(creation(new_topic(talk.name()), new_topic(talk.name(), 2)), talk.version)


@scenario(
    ApiKey.CREATE_TOPICS,
    cases={
        "empty": "",
        "one dot": ".",
        "two dots": "..",
        "a space": "a b",
        "a slash": "a/b",
        "not ASCII": "tópico",
        "too long": "n" * (LONGEST_NAME + 1),
        "the offsets topic": "__consumer_offsets",
        "the metadata topic": "__cluster_metadata",
    },
)
def name_is_bad(talk: Talk, name: str) -> None:
    talk.ask(creation(new_topic(name)), talk.version)


@scenario(ApiKey.CREATE_TOPICS, NEWEST)
def names_collide_in_metrics(talk: Talk) -> None:
    base = talk.name()
    talk.ask(creation(new_topic(f"{base}.a_b"), new_topic(f"{base}_a.c")))
    talk.ask(creation(new_topic(f"{base}_a.b")))


@scenario(
    ApiKey.CREATE_TOPICS,
    cases={
        "no partitions": (0, 1),
        "minus two partitions": (-2, 1),
        "no replicas": (1, 0),
        "minus two replicas": (1, -2),
        "more replicas than brokers": (1, 2),
        "both wrong": (0, 0),
    },
)
def numbers_are_bad(talk: Talk, numbers: tuple[int, int]) -> None:
    talk.ask(creation(new_topic(talk.name(), *numbers)), talk.version)


@scenario(
    ApiKey.CREATE_TOPICS,
    cases={
        "broker that is not there": (-1, -1, {0: [9]}),
        "broker twice": (-1, -1, {0: [1, 1]}),
        "no broker": (-1, -1, {0: []}),
        "negative broker": (-1, -1, {0: [-1]}),
        "partitions with a gap": (-1, -1, {0: [1], 2: [1]}),
        "partitions from one": (-1, -1, {1: [1]}),
        "negative partition": (-1, -1, {-1: [1]}),
        "with a number of partitions": (1, -1, {0: [1]}),
        "with a number of replicas": (-1, 1, {0: [1]}),
    },
)
def assignment_is_bad(talk: Talk, case: tuple[int, int, dict[int, list[int]]]) -> None:
    partitions, replicas, assignments = case
    topic = new_topic(talk.name(), partitions, replicas, assignments=assignments)
    talk.ask(creation(topic), talk.version)


@scenario(
    ApiKey.CREATE_TOPICS,
    NEWEST,
    cases={
        "unknown": {"no.such.setting": "1"},
        "not a number": {"retention.ms": "soon"},
        "null": {"retention.ms": None},
        "out of range": {"segment.bytes": "1"},
        "not in a list": {"cleanup.policy": "shred"},
        "of a broker": {"log.retention.ms": "1"},
        "not fitting together": {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
        "more in-sync replicas than there are": {"min.insync.replicas": "3"},
        "of tiered storage": {"remote.storage.enable": "true"},
        "good and bad": {"retention.ms": "1000", "segment.ms": "-5"},
    },
)
def setting_is_bad(talk: Talk, settings: dict[str, str | None]) -> None:
    talk.ask(creation(new_topic(talk.name(), settings=settings)))


@scenario(ApiKey.CREATE_TOPICS, NEWEST)
def setting_is_named_twice(talk: Talk) -> None:
    topic = new_topic(talk.name(), settings={"retention.ms": "1000"})
    topic.configs.extend(new_topic("other", settings={"retention.ms": "2000"}).configs)
    talk.ask(creation(topic))


@scenario(ApiKey.CREATE_TOPICS, NEWEST)
def timeout_is_zero(talk: Talk) -> None:
    request = creation(new_topic(talk.name()), validate_only=True)
    request.timeout_ms = 0
    talk.ask(request)


# -- DeleteTopics --------------------------------------------------------------------------


def deletion(version: int, *names: str, ids: tuple[bytes, ...] = ()) -> DeleteTopicsRequest:
    """A request to delete topics, by names or ids, as a version has it."""
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=TIMEOUT_MS)
    state = DeleteTopicsRequest.DeleteTopicState
    topics = [state(name=name) for name in names]
    topics += [state(name=None, topic_id=each) for each in ids]
    return DeleteTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)


@scenario(ApiKey.DELETE_TOPICS)
def topic_is_deleted(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(deletion(talk.version, talk.name()), talk.version)
    talk.wait_until_gone(talk.name())
    talk.ask(deletion(talk.version, talk.name()), talk.version)


@scenario(ApiKey.DELETE_TOPICS)
def one_topic_of_two_is_there(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(deletion(talk.version, talk.name(), talk.name("absent")), talk.version)


@scenario(ApiKey.DELETE_TOPICS)
def topic_to_delete_is_named_twice(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(deletion(talk.version, talk.name(), talk.name()), talk.version)


@scenario(ApiKey.DELETE_TOPICS, cases={"empty": "", "two dots": "..", "a slash": "a/b"})
def name_to_delete_is_bad(talk: Talk, name: str) -> None:
    talk.ask(deletion(talk.version, name), talk.version)


@scenario(ApiKey.DELETE_TOPICS)
def nothing_is_deleted(talk: Talk) -> None:
    talk.ask(deletion(talk.version), talk.version)


@scenario(ApiKey.DELETE_TOPICS, "6")
def topic_is_deleted_by_its_id(talk: Talk) -> None:
    topic_id = talk.create_topic(talk.name())
    talk.ask(deletion(6, ids=(topic_id,)), 6)
    talk.wait_until_gone(talk.name())
    talk.ask(deletion(6, ids=(topic_id,)), 6)


@scenario(ApiKey.DELETE_TOPICS, "6", cases={"unknown": b"\1" * 16, "zero": ZERO_UUID})
def id_to_delete_is_bad(talk: Talk, topic_id: bytes) -> None:
    talk.ask(deletion(6, ids=(topic_id,)), 6)


@scenario(ApiKey.DELETE_TOPICS, "6")
def topic_to_delete_has_name_and_id(talk: Talk) -> None:
    topic_id = talk.create_topic(talk.name())
    request = deletion(6, talk.name())
    request.topics[0].topic_id = topic_id
    talk.ask(request, 6)


@scenario(ApiKey.DELETE_TOPICS, "6")
def topic_to_delete_is_given_by_name_and_by_id(talk: Talk) -> None:
    topic_id = talk.create_topic(talk.name())
    talk.ask(deletion(6, talk.name(), ids=(topic_id,)), 6)


@scenario(ApiKey.DELETE_TOPICS)
def topic_is_created_anew(talk: Talk) -> None:
    talk.create_topic(talk.name(), 2)
    talk.ask(deletion(talk.version, talk.name()), talk.version)
    talk.wait_until_gone(talk.name())
    talk.create_topic(talk.name(), 1)


# -- CreatePartitions ----------------------------------------------------------------------


def addition(*topics: Any, **fields: Any) -> CreatePartitionsRequest:
    """A request for more partitions."""
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=TIMEOUT_MS, **fields)


def more(
    name: str, count: int, assignments: list[list[int]] | None = None
) -> CreatePartitionsRequest.CreatePartitionsTopic:
    """One topic that shall have so many partitions."""
    assigned = CreatePartitionsRequest.CreatePartitionsAssignment
    return CreatePartitionsRequest.CreatePartitionsTopic(
        name=name,
        count=count,
        assignments=None
        if assignments is None
        else [assigned(broker_ids=brokers) for brokers in assignments],
    )


@scenario(ApiKey.CREATE_PARTITIONS)
def partitions_are_added(talk: Talk) -> None:
    talk.create_topic(talk.name(), 2)
    talk.ask(addition(more(talk.name(), 3)), talk.version)
    talk.wait_for_topic(talk.name(), 3)


@scenario(ApiKey.CREATE_PARTITIONS)
def addition_is_only_validated(talk: Talk) -> None:
    talk.create_topic(talk.name(), 1)
    talk.ask(addition(more(talk.name(), 4), validate_only=True), talk.version)
    talk.wait_for_topic(talk.name(), 1)


@scenario(ApiKey.CREATE_PARTITIONS)
def partitions_are_added_by_hand(talk: Talk) -> None:
    talk.create_topic(talk.name(), 1)
    talk.ask(addition(more(talk.name(), 3, [[1], [1]])), talk.version)
    talk.wait_for_topic(talk.name(), 3)


@scenario(
    ApiKey.CREATE_PARTITIONS,
    cases={
        "as many as there are": (2, None),
        "fewer": (1, None),
        "none": (0, None),
        "negative": (-1, None),
        "too few assigned": (4, [[1]]),
        "too many assigned": (3, [[1], [1]]),
        "nobody assigned": (3, []),
        "broker that is not there": (3, [[9]]),
        "broker twice": (3, [[1, 1]]),
        "partition without a broker": (3, [[]]),
    },
)
def addition_is_bad(talk: Talk, case: tuple[int, list[list[int]] | None]) -> None:
    talk.create_topic(talk.name(), 2)
    talk.ask(addition(more(talk.name(), *case)), talk.version)


@scenario(ApiKey.CREATE_PARTITIONS, cases={"absent": "absent-topic", "empty": "", "bad": "a/b"})
def topic_to_extend_is_not_there(talk: Talk, name: str) -> None:
    talk.ask(addition(more(name, 3)), talk.version)


@scenario(ApiKey.CREATE_PARTITIONS)
def topic_to_extend_is_named_twice(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(addition(more(talk.name(), 2), more(talk.name(), 3)), talk.version)


@scenario(ApiKey.CREATE_PARTITIONS)
def nothing_is_extended(talk: Talk) -> None:
    talk.ask(addition(), talk.version)


# -- DeleteRecords -------------------------------------------------------------------------


def cut(name: str, offsets: dict[int, int]) -> DeleteRecordsRequest:
    """A request to delete what lies before some offsets."""
    partition = DeleteRecordsRequest.DeleteRecordsPartition
    topic = DeleteRecordsRequest.DeleteRecordsTopic(
        name=name,
        partitions=[partition(partition_index=index, offset=at) for index, at in offsets.items()],
    )
    return DeleteRecordsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


@scenario(
    ApiKey.DELETE_RECORDS,
    cases={
        "some": 2,
        "all by number": 5,
        "all by the mark for it": -1,
        "none": 0,
        "one too many": 6,
        "a negative offset": -2,
    },
)
def records_are_deleted(talk: Talk, offset: int) -> None:
    talk.create_topic(talk.name())
    talk.produce(talk.name(), count=5)
    talk.ask(cut(talk.name(), {0: offset}), talk.version)
    talk.ask(cut(talk.name(), {0: 1}), talk.version)


@scenario(ApiKey.DELETE_RECORDS)
def partition_to_cut_is_not_there(talk: Talk) -> None:
    talk.create_topic(talk.name())
    talk.ask(cut(talk.name(), {0: 0, 1: 0}), talk.version)
    talk.ask(cut(talk.name("absent"), {0: 0}), talk.version)
    talk.ask(cut("not/a/name", {0: 0}), talk.version)


@scenario(ApiKey.DELETE_RECORDS)
def compacted_topic_is_cut(talk: Talk) -> None:
    talk.create_topic(talk.name(), settings={"cleanup.policy": "compact"})
    talk.ask(cut(talk.name(), {0: 0}), talk.version)


@scenario(ApiKey.DELETE_RECORDS)
def internal_topic_is_cut(talk: Talk) -> None:
    talk.ask(cut("__consumer_offsets", {0: 0}), talk.version)


@scenario(ApiKey.DELETE_RECORDS)
def nothing_is_cut(talk: Talk) -> None:
    talk.ask(DeleteRecordsRequest(topics=[], timeout_ms=TIMEOUT_MS), talk.version)

"""OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from typing import Any

from ....broker.handlers.offset_commit import FIRST_OFFSETS_VERSION_WITH_TOPIC_IDS
from ....common.sentinels import ZERO_UUID
from ....protocol.api_keys import ApiKey
from ....protocol.messages import OffsetCommitRequest, OffsetDeleteRequest, OffsetFetchRequest
from ..scenario import scenario
from ..talk import Talk
from .classic_groups import Member, leaving, stable
from .consumer_groups import joined, topic_for_groups

FIRST_VERSION_WITH_GROUPS = 8
NO_MEMBER = Member("", "", -1)


def committing(
    group: str,
    topic: str | bytes,
    offsets: dict[int, int],
    member: Member = NO_MEMBER,
    *,
    metadata: str | None = "",
    leader_epoch: int = -1,
    retention_ms: int = -1,
) -> OffsetCommitRequest:
    """A request to keep offsets, by partition of one topic."""
    of_partition = OffsetCommitRequest.OffsetCommitRequestPartition
    partitions = [
        of_partition(
            partition_index=index,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for index, offset in offsets.items()
    ]
    named = OffsetCommitRequest.OffsetCommitRequestTopic(partitions=partitions)
    if isinstance(topic, str):
        named.name = topic
    else:
        named.topic_id = topic
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.id,
        group_instance_id=member.instance,
        retention_time_ms=retention_ms,
        topics=[named],
    )


def fetching(
    version: int,
    group: str,
    topic: str | bytes | None,
    *partitions: int,
    member: Member = NO_MEMBER,
    stable_only: bool = False,
) -> OffsetFetchRequest:
    """A request for offsets of one topic, or of all (None)."""
    if version < FIRST_VERSION_WITH_GROUPS:
        of_topic = OffsetFetchRequest.OffsetFetchRequestTopic
        assert not isinstance(topic, bytes)
        topics = None
        if topic is not None:
            topics = [of_topic(name=topic, partition_indexes=list(partitions))]
        return OffsetFetchRequest(group_id=group, topics=topics, require_stable=stable_only)
    named = OffsetFetchRequest.OffsetFetchRequestTopics(partition_indexes=list(partitions))
    if isinstance(topic, str):
        named.name = topic
    elif topic is not None:
        named.topic_id = topic
    of_group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group,
        member_id=member.id or None,
        member_epoch=member.generation,
        topics=None if topic is None else [named],
    )
    return OffsetFetchRequest(groups=[of_group], require_stable=stable_only)


def topic_of(talk: Talk, partitions: int = 2) -> Any:
    """Create the scenario's topic: its name, or its id where the version goes by ids."""
    topic_id = topic_for_groups(talk, talk.name(), partitions)
    return topic_id if talk.version >= FIRST_OFFSETS_VERSION_WITH_TOPIC_IDS else talk.name()


def with_group(talk: Talk, partitions: int = 2) -> tuple[str, Any]:
    """A group that is coordinated, and the scenario's topic."""
    return talk.name(), topic_of(talk, partitions)


# -- OffsetCommit --------------------------------------------------------------------------


@scenario(ApiKey.OFFSET_COMMIT)
def offsets_are_committed_by_nobody(talk: Talk) -> None:
    group, topic = with_group(talk)
    talk.ask(committing(group, topic, {0: 5, 1: 7}, metadata="noted"), talk.version)
    talk.ask(fetching(9, group, talk.name(), 0, 1), 9)


@scenario(ApiKey.OFFSET_COMMIT)
def offsets_are_committed_by_a_member(talk: Talk) -> None:
    group, topic = with_group(talk)
    member = stable(talk, group)
    talk.ask(committing(group, topic, {0: 5}, member), talk.version)
    talk.ask(committing(group, topic, {0: 3}, member), talk.version)
    talk.ask(fetching(9, group, talk.name(), 0, 1), 9)


@scenario(
    ApiKey.OFFSET_COMMIT,
    cases={
        "a stranger": ("stranger", None),
        "a later generation": (None, 1),
        "an earlier generation": (None, -1),
        "nobody while there are members": ("", -2),
    },
)
def offsets_are_committed_by(talk: Talk, case: tuple[str | None, int | None]) -> None:
    group, topic = with_group(talk)
    member = stable(talk, group)
    member_id, shift = case
    claimed = member._replace(
        id=member.id if member_id is None else member_id,
        generation=member.generation + (shift or 0),
    )
    talk.ask(committing(group, topic, {0: 5}, claimed), talk.version)


@scenario(ApiKey.OFFSET_COMMIT)
def offsets_are_committed_to_a_group_that_is_not_there(talk: Talk) -> None:
    group, topic = with_group(talk)
    talk.ask(committing(group, topic, {0: 5}, Member(group, "m", 3)), talk.version)


@scenario(ApiKey.OFFSET_COMMIT, cases={"empty": "", "odd": "a group / with \u00fc"})
def group_to_commit_to_is_called(talk: Talk, group: str) -> None:
    talk.ask(committing(group, topic_of(talk), {0: 5}), talk.version)


@scenario(ApiKey.OFFSET_COMMIT, cases={"negative": -1, "far below": -100, "huge": 1 << 60})
def committed_offset_is(talk: Talk, offset: int) -> None:
    group, topic = with_group(talk)
    talk.ask(committing(group, topic, {0: offset}), talk.version)
    talk.ask(fetching(9, group, talk.name(), 0), 9)


@scenario(ApiKey.OFFSET_COMMIT, cases={"too long": "x" * 4097, "just fits": "x" * 4096})
def committed_metadata_is(talk: Talk, metadata: str) -> None:
    group, topic = with_group(talk)
    talk.ask(committing(group, topic, {0: 1}, metadata=metadata), talk.version)


@scenario(ApiKey.OFFSET_COMMIT)
def committed_metadata_is_null(talk: Talk) -> None:
    group, topic = with_group(talk)
    talk.ask(committing(group, topic, {0: 1}, metadata=None), talk.version)
    talk.ask(fetching(9, group, talk.name(), 0), 9)


@scenario(ApiKey.OFFSET_COMMIT)
def partitions_to_commit_are_not_there(talk: Talk) -> None:
    group, topic = with_group(talk)
    talk.ask(committing(group, topic, {0: 1, 9: 1, -1: 1}), talk.version)


@scenario(ApiKey.OFFSET_COMMIT, "2-9", cases={"absent": "absent-topic", "bad": "a/b", "empty": ""})
def topic_to_commit_is_not_there(talk: Talk, topic: str) -> None:
    talk.ask(committing(talk.name(), topic, {0: 1}), talk.version)


@scenario(ApiKey.OFFSET_COMMIT, "10-", cases={"unknown": b"\5" * 16, "zero": ZERO_UUID})
def topic_id_to_commit_is_unknown(talk: Talk, topic_id: bytes) -> None:
    talk.ask(committing(talk.name(), topic_id, {0: 1}), talk.version)


@scenario(ApiKey.OFFSET_COMMIT, "6-", cases={"the one": 0, "a later one": 5})
def committed_leader_epoch_is(talk: Talk, epoch: int) -> None:
    group, topic = with_group(talk)
    talk.ask(committing(group, topic, {0: 1}, leader_epoch=epoch), talk.version)
    talk.ask(fetching(9, group, talk.name(), 0), 9)


@scenario(ApiKey.OFFSET_COMMIT, "2-4")
def committed_offsets_are_kept_for_a_while(talk: Talk) -> None:
    group, topic = with_group(talk)
    talk.ask(committing(group, topic, {0: 1}, retention_ms=60_000), talk.version)


@scenario(ApiKey.OFFSET_COMMIT)
def nothing_is_committed(talk: Talk) -> None:
    request = committing(talk.name(), "t", {})
    request.topics = []
    talk.ask(request, talk.version)


@scenario(ApiKey.OFFSET_COMMIT, "7-", cases={"its own": "the-one", "another": "other"})
def offsets_are_committed_by_instance(talk: Talk, instance: str) -> None:
    group, topic = with_group(talk)
    member = stable(talk, group, "the-one")
    talk.ask(committing(group, topic, {0: 1}, member._replace(instance=instance)), talk.version)


@scenario(
    ApiKey.OFFSET_COMMIT,
    "8-",
    cases={"its own": 0, "an older": -1, "a later": 1},
)
def offsets_are_committed_in_a_member_epoch(talk: Talk, shift: int) -> None:
    group, topic = with_group(talk)
    member = joined(talk, group, talk.name())
    claimed = Member(group, member.id, member.epoch + shift)
    talk.ask(committing(group, topic, {0: 1}, claimed), talk.version)


# -- OffsetFetch ---------------------------------------------------------------------------


def committed(talk: Talk) -> tuple[str, Any]:
    """A group with offsets for two of three partitions, and the topic."""
    group, topic = with_group(talk, 3)
    talk.ask(committing(group, talk.name(), {0: 4, 2: 6}, metadata="m", leader_epoch=0), 9)
    return group, topic


@scenario(ApiKey.OFFSET_FETCH)
def offsets_are_fetched(talk: Talk) -> None:
    group, topic = committed(talk)
    talk.ask(fetching(talk.version, group, topic, 0, 1, 2, 7), talk.version)


@scenario(ApiKey.OFFSET_FETCH, "2-")
def all_offsets_are_fetched(talk: Talk) -> None:
    group, _ = committed(talk)
    talk.ask(fetching(talk.version, group, None), talk.version)


@scenario(ApiKey.OFFSET_FETCH, "2-")
def all_offsets_of_no_group_are_fetched(talk: Talk) -> None:
    talk.ask(fetching(talk.version, "absent-group", None), talk.version)
    talk.ask(fetching(talk.version, "", None), talk.version)


@scenario(ApiKey.OFFSET_FETCH)
def offsets_of_no_group_are_fetched(talk: Talk) -> None:
    topic = topic_of(talk)
    talk.ask(fetching(talk.version, "absent-group", topic, 0), talk.version)


@scenario(ApiKey.OFFSET_FETCH, "1-9", cases={"absent": "absent-topic", "bad": "a/b", "empty": ""})
def offsets_of_no_topic_are_fetched(talk: Talk, topic: str) -> None:
    group, _ = committed(talk)
    talk.ask(fetching(talk.version, group, topic, 0, 1), talk.version)


@scenario(ApiKey.OFFSET_FETCH, "10-", cases={"unknown": b"\6" * 16, "zero": ZERO_UUID})
def offsets_of_an_unknown_id_are_fetched(talk: Talk, topic_id: bytes) -> None:
    group, _ = committed(talk)
    talk.ask(fetching(talk.version, group, topic_id, 0), talk.version)


@scenario(ApiKey.OFFSET_FETCH)
def offsets_of_no_partition_are_fetched(talk: Talk) -> None:
    group, topic = committed(talk)
    talk.ask(fetching(talk.version, group, topic), talk.version)


@scenario(ApiKey.OFFSET_FETCH, "7-")
def stable_offsets_are_fetched(talk: Talk) -> None:
    group, topic = committed(talk)
    talk.ask(fetching(talk.version, group, topic, 0, stable_only=True), talk.version)


@scenario(ApiKey.OFFSET_FETCH, "8-")
def offsets_of_several_groups_are_fetched(talk: Talk) -> None:
    group, topic = committed(talk)
    request = fetching(talk.version, group, topic, 0)
    request.groups += fetching(talk.version, "absent-group", topic, 0).groups
    request.groups += fetching(talk.version, group, None).groups
    talk.ask(request, talk.version)


@scenario(ApiKey.OFFSET_FETCH, "8-")
def offsets_of_nothing_are_fetched(talk: Talk) -> None:
    talk.ask(OffsetFetchRequest(groups=[]), talk.version)


@scenario(
    ApiKey.OFFSET_FETCH,
    "9-",
    cases={
        "the member": (None, 0),
        "a stranger": ("stranger", 0),
        "the member of an older epoch": (None, -1),
        "the member of a later epoch": (None, 1),
    },
)
def offsets_are_fetched_by(talk: Talk, case: tuple[str | None, int]) -> None:
    group, topic = committed(talk)
    member = joined(talk, group, talk.name())
    member_id, shift = case
    claimed = Member(group, member_id or member.id, member.epoch + shift)
    talk.ask(fetching(talk.version, group, topic, 0, member=claimed), talk.version)


# -- OffsetDelete --------------------------------------------------------------------------


def deleting(group: str, topic: str, *partitions: int) -> OffsetDeleteRequest:
    """A request to forget offsets."""
    of_partition = OffsetDeleteRequest.OffsetDeleteRequestPartition
    of_topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(
        name=topic, partitions=[of_partition(partition_index=each) for each in partitions]
    )
    return OffsetDeleteRequest(group_id=group, topics=[of_topic])


@scenario(ApiKey.OFFSET_DELETE)
def offsets_are_deleted(talk: Talk) -> None:
    group, _ = committed(talk)
    talk.ask(deleting(group, talk.name(), 0, 1))
    talk.ask(fetching(9, group, talk.name(), 0, 2), 9)


@scenario(ApiKey.OFFSET_DELETE)
def partition_to_delete_offsets_of_is_not_there(talk: Talk) -> None:
    group, _ = committed(talk)
    talk.ask(deleting(group, talk.name(), 0, 8))
    talk.ask(deleting(group, talk.name("absent"), 0))


@scenario(ApiKey.OFFSET_DELETE, cases={"unknown": "absent-group", "empty": ""})
def group_to_delete_offsets_of_is_not_there(talk: Talk, group: str) -> None:
    talk.create_topic(talk.name())
    talk.ask(deleting(group, talk.name(), 0))


@scenario(ApiKey.OFFSET_DELETE)
def offsets_are_deleted_under_a_member(talk: Talk) -> None:
    group, _ = committed(talk)
    member = stable(talk, group)
    talk.ask(deleting(group, talk.name(), 0))
    talk.ask(leaving(5, group, (member.id, None)))
    talk.ask(deleting(group, talk.name(), 0))


@scenario(ApiKey.OFFSET_DELETE)
def offsets_are_deleted_under_a_member_of_the_new_protocol(talk: Talk) -> None:
    group, _ = committed(talk)
    joined(talk, group, talk.name())
    talk.ask(deleting(group, talk.name(), 0))


@scenario(ApiKey.OFFSET_DELETE)
def no_offset_is_deleted(talk: Talk) -> None:
    group, _ = committed(talk)
    talk.ask(OffsetDeleteRequest(group_id=group, topics=[]))
    talk.ask(deleting(group, talk.name()))

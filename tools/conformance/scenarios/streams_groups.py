"""Groups of Kafka Streams (KIP-1071): StreamsGroupHeartbeat and StreamsGroupDescribe."""

from __future__ import annotations

import time
from typing import Any

from ....protocol.api_keys import ApiKey
from ....protocol.messages import (
    DeleteGroupsRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)
from ..scenario import scenario
from ..talk import RETRY_SECONDS, SETTLE_SECONDS_MAX, Talk

REBALANCE_MS = 30_000
JOIN, LEAVE = 0, -1
FIRST, SECOND = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
COMMIT_VERSION = 9
"""Of OffsetCommit: the last that names topics."""


def topology(*subtopologies: Any, epoch: int = 0) -> Any:
    """What a member that joins brings."""
    return StreamsGroupHeartbeatRequest.Topology(epoch=epoch, subtopologies=list(subtopologies))


def reading(*topics: str, name: str = "0", **fields: Any) -> Any:
    """A subtopology that reads topics."""
    return StreamsGroupHeartbeatRequest.Subtopology(
        subtopology_id=name, source_topics=list(topics), **fields
    )


def internal(name: str, partitions: int = 0) -> Any:
    """A topic that a subtopology needs for itself."""
    make = StreamsGroupHeartbeatRequest
    return make.TopicInfo(
        name=name,
        partitions=partitions,
        replication_factor=1,
        topic_configs=[make.KeyValue(key="cleanup.policy", value="compact")],
    )


def tasks(**partitions: list[int]) -> list[Any]:
    """Tasks of subtopologies: `tasks(a=[0, 1])`."""
    return [
        StreamsGroupHeartbeatRequest.TaskIds(subtopology_id=name, partitions=numbers)
        for name, numbers in partitions.items()
    ]


def beat(group: str, member: str = FIRST, epoch: int = JOIN, **fields: Any) -> Any:
    """A heartbeat; one that joins brings what a joining one must."""
    if epoch == JOIN:
        fields = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "process_id": f"process-{member}",
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "client_tags": [],
            **fields,
        }
    return StreamsGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, **fields
    )


def owning(*active: Any) -> dict[str, Any]:
    """What a member says that it has."""
    return {"active_tasks": list(active), "standby_tasks": [], "warmup_tasks": []}


def topic_for_streams(talk: Talk, name: str, partitions: int) -> str:
    """Create a topic, and wait until the group coordinator knows it as well."""
    talk.create_topic(name, partitions)
    group = f"{name}-is-known"
    answer = talk.quietly(beat(group, topology=topology(reading(name))))
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while answer.status or not answer.active_tasks:
        assert time.monotonic() < deadline, f"{name} is not assigned: {answer!r}"
        time.sleep(RETRY_SECONDS)  # another process has no event to wait for
        talk.quietly(beat(group, epoch=LEAVE))
        answer = talk.quietly(beat(group, topology=topology(reading(name))))
    talk.quietly(beat(group, epoch=LEAVE))
    return name


# -- StreamsGroupHeartbeat ------------------------------------------------------------------


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_member_gets_all_tasks(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 3)
    talk.ask(beat(talk.name(), topology=topology(reading(topic, name="a"))))
    talk.ask(beat(talk.name(), epoch=2, **owning(*tasks(a=[0, 1, 2]))))
    talk.ask(beat(talk.name(), epoch=2))
    talk.ask(beat(talk.name(), topology=topology(reading(topic, name="a"))))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_tasks_move_to_a_second_member(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 2)
    reported = topology(reading(topic, name="a"))
    talk.ask(beat(talk.name(), topology=reported))
    talk.ask(beat(talk.name(), SECOND, topology=reported))
    kept = talk.ask(beat(talk.name(), epoch=2)).active_tasks
    talk.ask(beat(talk.name(), SECOND, 3))
    talk.ask(beat(talk.name(), epoch=2, **owning(*tasks(a=kept[0].partitions))))
    talk.ask(beat(talk.name(), SECOND, 3))
    talk.ask(StreamsGroupDescribeRequest(group_ids=[talk.name()]))
    talk.ask(beat(talk.name(), epoch=LEAVE))
    talk.ask(beat(talk.name(), SECOND, 3))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_source_topics_are_missing(talk: Talk) -> None:
    absent = [talk.name(each) for each in "abcd"]
    talk.ask(beat(talk.name(), topology=topology(reading(*absent))))
    talk.ask(beat(talk.name(), epoch=2))
    talk.ask(StreamsGroupDescribeRequest(group_ids=[talk.name()]))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_internal_topics_are_missing(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 2)
    log, again = talk.name("log"), talk.name("again")
    talk.ask(
        beat(
            talk.name(),
            topology=topology(
                reading(topic, repartition_sink_topics=[again]),
                reading(
                    name="1",
                    repartition_source_topics=[internal(again)],
                    state_changelog_topics=[internal(log)],
                ),
            ),
        )
    )


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_internal_topics_come_to_be(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 2)
    reported = topology(reading(topic, state_changelog_topics=[internal(talk.name("log"))]))
    answer = talk.quietly(beat(talk.name(), topology=reported))
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while answer.status:
        assert time.monotonic() < deadline, answer
        time.sleep(RETRY_SECONDS)  # another process has no event to wait for
        answer = talk.quietly(beat(talk.name(), epoch=answer.member_epoch))
    talk.ask(beat(talk.name(), epoch=answer.member_epoch))
    talk.ask(StreamsGroupDescribeRequest(group_ids=[talk.name()]))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_topics_have_other_partitions(talk: Talk) -> None:
    two, three = talk.name("two"), talk.name("three")
    topic_for_streams(talk, two, 2)
    topic_for_streams(talk, three, 3)
    group = StreamsGroupHeartbeatRequest.CopartitionGroup(source_topics=[0, 1])
    together = reading(two, three, copartition_groups=[group])
    talk.ask(beat(talk.name(), topology=topology(together)))
    log = reading(two, state_changelog_topics=[internal(three)])
    talk.ask(beat(talk.name("log"), topology=topology(log)))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_topology_is_refused(talk: Talk) -> None:
    for reported in (
        topology(reading("__consumer_offsets")),
        topology(reading("not/a/topic")),
        topology(reading("a", source_topic_regex=["b.*"])),
        topology(reading("a", state_changelog_topics=[internal("log", 2)])),
        topology(reading(name="a", repartition_source_topics=[internal("never-written")])),
        topology(
            reading(
                name="a",
                repartition_sink_topics=["loop"],
                repartition_source_topics=[internal("loop")],
            )
        ),
    ):
        talk.ask(beat(talk.name(), topology=reported))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_topology_is_another(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 1)
    talk.ask(beat(talk.name(), topology=topology(reading(topic), epoch=1)))
    talk.ask(beat(talk.name(), SECOND, topology=topology(reading(topic), epoch=0)))
    talk.ask(beat(talk.name(), SECOND, topology=topology(reading(topic), epoch=2)))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_request_is_refused(talk: Talk) -> None:
    reported = topology(reading("absent-topic"))
    for fields in (
        {"topology": None},
        {"topology": reported, "rebalance_timeout_ms": -1},
        {"topology": reported, "instance_id": "instance"},
        {"topology": reported, "active_tasks": tasks(a=[0])},
        {"topology": reported, "warmup_tasks": tasks(a=[0])},
        {"topology": reported, "standby_tasks": None},
        {"topology": reported, "task_offsets": []},
        {"topology": reported, "rack_id": ""},
    ):
        talk.ask(beat(talk.name(), **fields))
    talk.ask(beat(talk.name(), "", topology=reported))
    talk.ask(beat("", topology=reported))
    talk.ask(beat(talk.name(), epoch=-2))
    talk.ask(beat(talk.name(), epoch=-3))
    talk.ask(beat(talk.name(), epoch=1))
    talk.ask(beat(talk.name(), epoch=LEAVE))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_epochs_are_fenced(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 2)
    talk.ask(beat(talk.name(), topology=topology(reading(topic, name="a"))))
    for epoch in (1, 3):
        talk.ask(beat(talk.name(), epoch=epoch))
    talk.ask(beat(talk.name(), epoch=1, **owning(*tasks(b=[0]))))
    talk.ask(beat(talk.name(), epoch=2, **owning(*tasks(a=[2]))))
    talk.ask(beat(talk.name(), SECOND, 2))
    talk.ask(beat(talk.name(), epoch=2, topology=topology(reading(topic, name="a"))))


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_members_tell_their_endpoints(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 2)
    endpoint = StreamsGroupHeartbeatRequest.Endpoint(host="localhost", port=8080)
    reported = topology(reading(topic, name="a"))
    talk.ask(beat(talk.name(), topology=reported, user_endpoint=endpoint))
    known = talk.ask(beat(talk.name(), epoch=2, endpoint_information_epoch=-1))
    talk.ask(
        beat(talk.name(), epoch=2, endpoint_information_epoch=known.endpoint_information_epoch)
    )


@scenario(ApiKey.STREAMS_GROUP_HEARTBEAT)
def streams_member_ends_the_application(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 2)
    reported = topology(reading(topic, name="a"))
    talk.ask(beat(talk.name(), topology=reported))
    talk.ask(beat(talk.name(), SECOND, topology=reported))
    talk.ask(beat(talk.name(), epoch=LEAVE, shutdown_application=True))
    talk.ask(beat(talk.name(), SECOND, 3))


# -- what else is asked of such groups ------------------------------------------------------


@scenario(ApiKey.STREAMS_GROUP_DESCRIBE)
def streams_groups_are_described(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 2)
    talk.ask(beat(talk.name(), topology=topology(reading(topic, name="a"))))
    for names in ([talk.name()], ["no-such-group"], [""]):
        talk.ask(StreamsGroupDescribeRequest(group_ids=names, include_authorized_operations=True))
    talk.ask(beat(talk.name(), epoch=LEAVE))
    talk.ask(StreamsGroupDescribeRequest(group_ids=[talk.name()]))
    talk.ask(ListGroupsRequest(types_filter=["streams"], states_filter=["nothing"]))


@scenario(ApiKey.OFFSET_COMMIT, "9")
def streams_members_commit(talk: Talk) -> None:
    topic = topic_for_streams(talk, talk.name(), 2)
    talk.ask(beat(talk.name(), topology=topology(reading(topic, name="a"))))
    make = OffsetCommitRequest
    for member, epoch in ((FIRST, 2), (FIRST, 1), (FIRST, 3), (SECOND, 2), ("", -1)):
        partition = make.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
        talk.ask(
            make(
                group_id=talk.name(),
                generation_id_or_member_epoch=epoch,
                member_id=member,
                topics=[make.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
            ),
            COMMIT_VERSION,
        )
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name()]))
    talk.ask(beat(talk.name(), epoch=LEAVE))
    talk.ask(DeleteGroupsRequest(groups_names=[talk.name()]))

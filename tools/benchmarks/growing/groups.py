"""Groups and their members: offsets committed beside others, and heartbeats."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ....bench.loads.wire import frame_of
from ....protocol import messages
from ..coordinator.group_rebalance import SUBSCRIPTION, MemberConnection, check
from ..measure import MeasuredBroker
from .connections import BUSY, LOAD_TOPIC
from .loading import EncodedRequests, loaded, member_of
from .requests import (
    CONSUMER_HEARTBEAT_ERROR_AT,
    CONSUMER_HEARTBEAT_VERSION,
    HEARTBEAT_ERROR_AT,
    HEARTBEAT_VERSION,
    commits,
    create_topics,
    find_coordinator,
)
from .series import Figures, Series

ONE_GROUP = "group-0"
LONG_SESSION_MS = 1_800_000
"""Longer than any run: nobody is to leave while others are measured."""

SUBSCRIBED_PARTITIONS = 100
SETTLE_SECONDS_MAX = 120
ASSIGNMENT_SECONDS = 1.5
"""A little more than group.consumer.assignment.interval.ms: no assignment is to come any more."""


def with_offsets(
    running: MeasuredBroker, values: Sequence[int], seconds: float
) -> Iterator[Figures]:
    """So many groups that have committed an offset; one of them goes on."""
    with member_of(running) as connection:
        create_topics(connection, [LOAD_TOPIC], 1)
        find_coordinator(connection, ONE_GROUP)
        loaded(running, commits([ONE_GROUP], LOAD_TOPIC), BUSY, seconds / 2)
        made = 0
        for value in values:
            requests = commits([f"group-{n}" for n in range(made, value)], LOAD_TOPIC)
            for frame in requests.frames:
                answer = connection.wire.exchange(frame)
                check(bytes(answer[requests.error_at :][:2]) == b"\0\0", answer)
            made = value
            yield loaded(running, commits([ONE_GROUP], LOAD_TOPIC), BUSY, seconds)


def with_members(
    running: MeasuredBroker, values: Sequence[int], seconds: float
) -> Iterator[Figures]:
    """So many classic groups of one member, whose heartbeats come one after another."""
    frames: list[bytes] = []
    with member_of(running) as connection:
        find_coordinator(connection, ONE_GROUP)
        for value in values:
            frames += [_joined(connection, f"group-{n}") for n in range(len(frames), value)]
            requests = EncodedRequests(frames, HEARTBEAT_ERROR_AT)
            loaded(running, requests, BUSY, seconds / 2)
            yield loaded(running, requests, BUSY, seconds)


def _joined(connection: MemberConnection, group: str) -> bytes:
    """Let one member form a group; its heartbeat."""
    connection.group, connection.id = group, ""
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
    for _ in range(2):  # the first answer has the member's id
        connection.send(
            messages.JoinGroupRequest(
                group_id=group,
                member_id=connection.id,
                protocol_type="consumer",
                session_timeout_ms=LONG_SESSION_MS,
                rebalance_timeout_ms=60_000,
                protocols=[protocol(name="range", metadata=SUBSCRIPTION)],
            )
        )
        if not connection.id:
            connection.take_id()
    connection.take_join()
    connection.send_sync()
    connection.take_sync()
    beat = messages.HeartbeatRequest(
        group_id=group, member_id=connection.id, generation_id=connection.generation
    )
    return frame_of(beat, HEARTBEAT_VERSION)


def of_one_group(
    running: MeasuredBroker, values: Sequence[int], seconds: float
) -> Iterator[Figures]:
    """So many members of one consumer group (KIP-848), whose heartbeats come in turns."""
    members: list[ConsumerMember] = []
    with member_of(running) as connection:
        create_topics(connection, [LOAD_TOPIC], SUBSCRIBED_PARTITIONS)
        find_coordinator(connection, ONE_GROUP)
        for value in values:
            for _ in range(len(members), value):
                members.append(ConsumerMember(str(uuid.uuid4())))
                _beat(connection, members[-1])
            _settle(connection, members)
            frames = [frame_of(_heartbeat(each), CONSUMER_HEARTBEAT_VERSION) for each in members]
            yield loaded(
                running, EncodedRequests(frames, CONSUMER_HEARTBEAT_ERROR_AT), BUSY, seconds
            )


@dataclass
class ConsumerMember:
    """What a member of a consumer group knows; what it owns is sent once after a change."""

    id: str
    epoch: int = 0
    owned: list[messages.ConsumerGroupHeartbeatRequest.TopicPartitions] | None = field(
        default_factory=list
    )


def _heartbeat(member: ConsumerMember) -> messages.ConsumerGroupHeartbeatRequest:
    return messages.ConsumerGroupHeartbeatRequest(
        group_id=ONE_GROUP,
        member_id=member.id,
        member_epoch=member.epoch,
        rebalance_timeout_ms=60_000 if not member.epoch else -1,
        subscribed_topic_names=None if member.epoch else [LOAD_TOPIC],
        topic_partitions=member.owned,
    )


def _beat(connection: MemberConnection, member: ConsumerMember) -> bool:
    """One heartbeat, and what its answer asks for; whether it changed anything."""
    connection.send(_heartbeat(member))
    answer = connection.receive()
    check(answer.error_code == 0, answer)
    before = member.epoch, member.owned
    member.epoch, member.owned = answer.member_epoch, None
    if answer.assignment is not None:
        owned = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
        member.owned = [
            owned(topic_id=each.topic_id, partitions=list(each.partitions))
            for each in answer.assignment.topic_partitions
        ]
    return before != (member.epoch, member.owned)


def _settle(connection: MemberConnection, members: Sequence[ConsumerMember]) -> None:
    """Let every member beat until nothing changes for any, nor will by a later assignment."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    has_rested = False
    while (changed := sum(_beat(connection, member) for member in members)) or not has_rested:
        check(time.monotonic() < deadline, "a group that does not settle")
        has_rested = not changed
        if has_rested:
            time.sleep(ASSIGNMENT_SECONDS)


SERIES = (
    Series(
        "groups with offsets",
        "groups",
        (1, 10, 100, 1000, 10_000),
        "16 connections commit an offset for one of them",
        with_offsets,
        each="group",
    ),
    Series(
        "groups with members",
        "classic groups of one member",
        (1, 10, 100, 1000, 10_000),
        "16 connections send the heartbeat of each in its turn",
        with_members,
        "group",
        ("group.initial.rebalance.delay.ms=0",),
    ),
    Series(
        "members of a group",
        "members of one consumer group",
        (1, 10, 100, 1000),
        "16 connections send the heartbeat of each in its turn",
        of_one_group,
        "member",
        ("group.consumer.session.timeout.ms=60000",),
    ),
)

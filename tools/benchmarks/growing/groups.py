"""Groups and their members: offsets committed beside others, and heartbeats."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from group_rebalance import SUBSCRIPTION, check
from measure import BrokerUnderTest

from odradek.protocol import messages

from .connections import BUSY, TOPIC
from .loading import Asker, Requests, asker, loaded
from .requests import (
    CONSUMER_HEARTBEAT_ERROR_AT,
    CONSUMER_HEARTBEAT_VERSION,
    HEARTBEAT_ERROR_AT,
    HEARTBEAT_VERSION,
    commits,
    create_topics,
    find_coordinator,
    framed,
)
from .series import Figures, Series

ONE_GROUP = "group-0"
SESSION_MS = 1_800_000
"""Longer than any run: nobody is to leave while others are measured."""

PARTITIONS = 100
SETTLE_SECONDS_MAX = 120
ASSIGNMENT_SECONDS = 1.5
"""A little more than group.consumer.assignment.interval.ms: no assignment is to come any more."""


def with_offsets(
    running: BrokerUnderTest, values: Sequence[int], seconds: float
) -> Iterator[Figures]:
    """So many groups that have committed an offset; one of them goes on."""
    with asker(running) as asking:
        create_topics(asking, [TOPIC], 1)
        find_coordinator(asking, ONE_GROUP)
        loaded(running, commits([ONE_GROUP], TOPIC), BUSY, seconds / 2)
        made = 0
        for value in values:
            requests = commits([f"group-{n}" for n in range(made, value)], TOPIC)
            for frame in requests.frames:
                answer = asking.ask(frame)
                check(answer[requests.error_at : requests.error_at + 2] == b"\0\0", answer)
            made = value
            yield loaded(running, commits([ONE_GROUP], TOPIC), BUSY, seconds)


def with_members(
    running: BrokerUnderTest, values: Sequence[int], seconds: float
) -> Iterator[Figures]:
    """So many classic groups of one member, whose heartbeats come one after another."""
    frames: list[bytes] = []
    with asker(running) as asking:
        find_coordinator(asking, ONE_GROUP)
        for value in values:
            frames += [_joined(asking, f"group-{n}") for n in range(len(frames), value)]
            requests = Requests(frames, HEARTBEAT_ERROR_AT)
            loaded(running, requests, BUSY, seconds / 2)
            yield loaded(running, requests, BUSY, seconds)


def _joined(asking: Asker, group: str) -> bytes:
    """Let one member form a group; its heartbeat."""
    asking.group, asking.id = group, ""
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
    for _ in range(2):  # the first answer has the member's id
        asking.send(
            messages.JoinGroupRequest(
                group_id=group,
                member_id=asking.id,
                protocol_type="consumer",
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=60_000,
                protocols=[protocol(name="range", metadata=SUBSCRIPTION)],
            )
        )
        asking.id or asking.take_id()
    asking.take_join()
    asking.send_sync()
    asking.take_sync()
    beat = messages.HeartbeatRequest(
        group_id=group, member_id=asking.id, generation_id=asking.generation
    )
    return framed(beat, HEARTBEAT_VERSION)


def of_one_group(
    running: BrokerUnderTest, values: Sequence[int], seconds: float
) -> Iterator[Figures]:
    """So many members of one consumer group (KIP-848), whose heartbeats come in turns."""
    members: list[ConsumerMember] = []
    with asker(running) as asking:
        create_topics(asking, [TOPIC], PARTITIONS)
        find_coordinator(asking, ONE_GROUP)
        for value in values:
            for _ in range(len(members), value):
                members.append(ConsumerMember(str(uuid.uuid4())))
                _beat(asking, members[-1])
            _settle(asking, members)
            frames = [framed(_heartbeat(each), CONSUMER_HEARTBEAT_VERSION) for each in members]
            yield loaded(running, Requests(frames, CONSUMER_HEARTBEAT_ERROR_AT), BUSY, seconds)


@dataclass
class ConsumerMember:
    """What a member of a consumer group knows; what it owns is told once after a change."""

    id: str
    epoch: int = 0
    owned: Sequence[messages.ConsumerGroupHeartbeatRequest.TopicPartitions] | None = ()


def _heartbeat(member: ConsumerMember) -> messages.ConsumerGroupHeartbeatRequest:
    return messages.ConsumerGroupHeartbeatRequest(
        group_id=ONE_GROUP,
        member_id=member.id,
        member_epoch=member.epoch,
        rebalance_timeout_ms=60_000 if not member.epoch else -1,
        subscribed_topic_names=None if member.epoch else [TOPIC],
        topic_partitions=member.owned,
    )


def _beat(asking: Asker, member: ConsumerMember) -> bool:
    """One heartbeat, and what its answer asks for; whether it changed anything."""
    asking.send(_heartbeat(member))
    answer = asking.receive()
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


def _settle(asking: Asker, members: Sequence[ConsumerMember]) -> None:
    """Let every member beat until nothing changes for any, nor will by a later assignment."""
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    has_rested = False
    while (changed := sum(_beat(asking, member) for member in members)) or not has_rested:
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

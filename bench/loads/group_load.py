"""Heartbeats of a stable group, each member on a connection of its own, as fast as they go."""

from __future__ import annotations

import contextlib
import select
import struct
import time
import uuid
from array import array
from collections.abc import Callable
from contextlib import ExitStack
from itertools import repeat
from typing import Any

from ...common.errors import ErrorCode
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ..cluster import LoadTopic, TargetCluster, new_name
from ..errors import BenchError
from ..figures import Figures, Measured
from ..run.driver import Lane, drive
from ..target import BenchTarget
from .load import WARM_UP_SHARE, Load
from .prepared import answer_bytes, place_of
from .wire import Wire, check, frame_of

MEMBERS = 16
SESSION_MS = 30_000
REBALANCE_MS = 30_000
GROUP_SETTLE_SECONDS_MAX = 30.0
LOOK_SECONDS = 0.02
PATIENCE = 0.2
"""Seconds until those who have joined join again beside those who have not."""
FIRST_VERSION_WITH_ID_FIRST = 4
"""Of JoinGroup: a member without an id is given one, and joins with that (KIP-394)."""
FIRST_VERSION_LEAVING_TOGETHER = 3
"""Of LeaveGroup: it names several members."""
LEAVING_EPOCH = -1

Forming = Callable[[list[Wire], str, LoadTopic, list[str]], list[Lane]]
"""Lets a group of these connections form; returns what sends its members' heartbeats, and adds the
members' ids to a list as they are known."""
Leaving = Callable[[Wire, str, list[str]], None]
"""Takes members from a group."""


def classic_heartbeats() -> Load:
    """Heartbeat, of a group whose members assign partitions themselves."""
    return _load("classic", _classic_lanes, _leave_classic, "Heartbeat of a classic group")


def consumer_heartbeats() -> Load:
    """ConsumerGroupHeartbeat, of a group whose partitions the broker assigns (KIP-848)."""
    what = "ConsumerGroupHeartbeat of a group of KIP-848"
    return _load("consumer", _consumer_lanes, _leave_consumer, what)


def _load(kind: str, form: Forming, leave: Leaving, what: str) -> Load:
    def run(target: BenchTarget, seconds: float) -> Figures:
        group = new_name()
        with TargetCluster(target) as cluster, ExitStack() as stack:
            topic = stack.enter_context(cluster.topic(MEMBERS))
            wires = [stack.enter_context(cluster.group_coordinator(group))]
            peer = wires[0].host, wires[0].port
            wires += [stack.enter_context(cluster.connect(*peer)) for _ in range(MEMBERS - 1)]
            ids: list[str] = []
            stack.callback(_end_group, cluster, group, leave, ids)
            lanes = form(wires, group, topic, ids)
            drive(lanes, 1, seconds * WARM_UP_SHARE, array("d"))
            with Measured(target) as measured:
                drive(lanes, 1, seconds, measured.latencies)
        return measured.figures()

    about = f"{what}, of {MEMBERS} members on a connection each, one in flight on each"
    return Load(f"heartbeats, {kind} group", about, run)


def _end_group(cluster: TargetCluster, group: str, leave: Leaving, ids: list[str]) -> None:
    """Have the members leave, and remove the group; what cannot be done now, time does."""
    with contextlib.suppress(BenchError), cluster.coordinator(group, 0) as wire:
        leave(wire, group, ids)
        wire.ask(messages.DeleteGroupsRequest(groups_names=[group]))


# -- classic groups ----------------------------------------------------------------------------


def _classic_lanes(wires: list[Wire], group: str, topic: LoadTopic, ids: list[str]) -> list[Lane]:
    version = wires[0].version(ApiKey.JOIN_GROUP)
    ids += [""] * len(wires)
    if version >= FIRST_VERSION_WITH_ID_FIRST:
        answers = _ask_all(wires, [_join(group, topic, "")] * len(wires))
        for wire, answer in zip(wires, answers, strict=True):
            check(answer.error_code, "JoinGroup", wire.peer, (ErrorCode.MEMBER_ID_REQUIRED,))
        ids[:] = [answer.member_id for answer in answers]
    joined = _joined(wires, [_join(group, topic, member_id) for member_id in ids])
    ids[:] = [answer.member_id for answer in joined]
    synced = _ask_all(wires, [_sync(group, answer) for answer in joined])
    for wire, answer in zip(wires, synced, strict=True):
        check(answer.error_code, "SyncGroup", wire.peer)
    beat = wires[0].version(ApiKey.HEARTBEAT)
    response = messages.HeartbeatResponse
    error_at = place_of(lambda code: answer_bytes(response(error_code=code), beat))
    request = messages.HeartbeatRequest
    return [
        Lane(
            wire,
            repeat(
                frame_of(
                    request(
                        group_id=group,
                        generation_id=answer.generation_id,
                        member_id=answer.member_id,
                    ),
                    beat,
                )
            ),
            (error_at,),
            "Heartbeat",
        )
        for wire, answer in zip(wires, joined, strict=True)
    ]


def _joined(wires: list[Wire], requests: list[Any]) -> list[Any]:
    """Let all join one generation; the answers.

    A coordinator that waits for nobody begins with whoever came first, and then waits for these
    to join again beside the others.
    """
    version = wires[0].version(ApiKey.JOIN_GROUP)
    waiting = set(range(len(wires)))
    answers: list[Any] = [None] * len(wires)
    to_send = set(waiting)
    deadline = time.monotonic() + GROUP_SETTLE_SECONDS_MAX
    while waiting:
        for index in to_send:
            wires[index].send(frame_of(requests[index], version))
        to_send = set()
        ready, _, _ = select.select([wires[index].socket for index in waiting], [], [], PATIENCE)
        for index in [index for index in waiting if wires[index].socket in ready]:
            wire = wires[index]
            answers[index] = wire.decode(wire.receive(), ApiKey.JOIN_GROUP, version)
            check(answers[index].error_code, "JoinGroup", wire.peer)
            requests[index].member_id = answers[index].member_id
            waiting.remove(index)
        if time.monotonic() > deadline:
            raise BenchError(f"{wires[0].peer} did not let {len(wires)} members join in time")
        generations = {answer.generation_id for answer in answers if answer is not None}
        if (waiting and not ready) or (not waiting and len(generations) > 1):
            to_send = set(range(len(wires))) - waiting
            waiting |= to_send
    return answers


def _join(group: str, topic: LoadTopic, member_id: str) -> Any:
    name = topic.name.encode()
    subscription = struct.pack(">hih", 0, 1, len(name)) + name + struct.pack(">i", -1)
    protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
    return messages.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol(name="range", metadata=subscription)],
    )


def _sync(group: str, joined: Any) -> Any:
    """The leader's has everybody's assignment, which nobody looks into."""
    one = messages.SyncGroupRequest.SyncGroupRequestAssignment
    request = messages.SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[one(member_id=each.member_id, assignment=b"") for each in joined.members],
    )
    request.protocol_type = "consumer"
    request.protocol_name = "range"
    return request


def _leave_classic(wire: Wire, group: str, ids: list[str]) -> None:
    version = wire.version(ApiKey.LEAVE_GROUP)
    request = messages.LeaveGroupRequest
    if version >= FIRST_VERSION_LEAVING_TOGETHER:
        members = [request.MemberIdentity(member_id=each) for each in ids]
        wire.ask(request(group_id=group, members=members), version)
        return
    for each in ids:
        wire.ask(request(group_id=group, member_id=each), version)


def _ask_all(wires: list[Wire], requests: list[Any]) -> list[Any]:
    """Ask on all connections before the first answer, for they may depend on each other."""
    api_key = ApiKey(type(requests[0]).api_key)
    version = wires[0].version(api_key)
    for wire, request in zip(wires, requests, strict=True):
        wire.send(frame_of(request, version))
    return [wire.decode(wire.receive(), api_key, version) for wire in wires]


# -- groups of KIP-848 -------------------------------------------------------------------------


class _Member:
    """A member of a consumer group, as far as the broker has answered."""

    def __init__(self, wire: Wire, group: str, topic: LoadTopic) -> None:
        self.wire = wire
        self.epoch = 0
        self.partitions = 0
        self.id = str(uuid.uuid4())
        self._owned: list[Any] | None = []
        self._group = group
        self._topic = topic

    def request(self, *, joining: bool = False, owned: bool = False) -> Any:
        """A heartbeat; one that joins tells all there is."""
        request = messages.ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self.id, member_epoch=self.epoch
        )
        if joining:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = [self._topic.name]
        if joining or owned:
            request.topic_partitions = self._owned
        return request

    def beat(self, **what: bool) -> None:
        """Send a heartbeat, and take what the answer assigns."""
        answer = self.wire.ask(self.request(**what))
        check(answer.error_code, "ConsumerGroupHeartbeat", self.wire.peer)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            given = answer.assignment.topic_partitions
            made = messages.ConsumerGroupHeartbeatRequest.TopicPartitions
            self._owned = [
                made(topic_id=each.topic_id, partitions=list(each.partitions)) for each in given
            ]
            self.partitions = sum(len(each.partitions) for each in given)


def _leave_consumer(wire: Wire, group: str, ids: list[str]) -> None:
    for each in ids:
        wire.ask(
            messages.ConsumerGroupHeartbeatRequest(
                group_id=group, member_id=each, member_epoch=LEAVING_EPOCH
            )
        )


def _consumer_lanes(wires: list[Wire], group: str, topic: LoadTopic, ids: list[str]) -> list[Lane]:
    version = wires[0].version(ApiKey.CONSUMER_GROUP_HEARTBEAT)
    members = [_Member(wire, group, topic) for wire in wires]
    for member in members:
        ids.append(member.id)
        member.beat(joining=True)
    deadline = time.monotonic() + GROUP_SETTLE_SECONDS_MAX
    while len({each.epoch for each in members}) > 1 or any(not each.partitions for each in members):
        if time.monotonic() > deadline:
            raise BenchError(f"{wires[0].peer} did not settle a group of {MEMBERS} members in time")
        time.sleep(LOOK_SECONDS)
        for member in members:
            member.beat(owned=True)
    response = messages.ConsumerGroupHeartbeatResponse
    error_at = place_of(lambda code: answer_bytes(response(error_code=code), version))
    return [
        Lane(
            each.wire,
            repeat(frame_of(each.request(), version)),
            (error_at,),
            "ConsumerGroupHeartbeat",
        )
        for each in members
    ]

"""A member of a classic group, as a state machine: what it sends when, and what it makes of the
answers. Times are milliseconds."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from odradek.client.consumer.group.classic_membership import (
    TRANSITIONS,
    ClassicMembership,
    MemberState,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from odradek.client.consumer.group.membership import CountPartitions, Rebalance, Send, Wait
from odradek.common.errors import ErrorCode
from odradek.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)

INTERVAL_MS = 3_000
RequestT = TypeVar("RequestT")


def parts(*numbers: int, topic: str = "t") -> frozenset[tuple[str, int]]:
    return frozenset((topic, number) for number in numbers)


class Bench:
    """A membership, and a coordinator that answers as it is told."""

    def __init__(self, *assignors: str, **options: Any) -> None:
        self.member = ClassicMembership("g", assignors or ("range",), **options)
        self.now_ms = 0
        self.generation = 0
        self.member.subscribe(frozenset({"t"}))

    def sent(self, kind: type[RequestT]) -> RequestT:
        step = self.member.next_step(self.now_ms)
        assert isinstance(step, Send), step
        assert isinstance(step.request, kind)
        return step.request

    def refuse(self, request: Any, code: int) -> Any:
        answer = {
            JoinGroupRequest: JoinGroupResponse,
            SyncGroupRequest: SyncGroupResponse,
            HeartbeatRequest: HeartbeatResponse,
        }[type(request)]
        return self.member.answered(request, answer(error_code=code), self.now_ms)

    def join(self, leader: str = "other", **members: bytes) -> None:
        """Take the member into a generation."""
        self.generation += 1
        make = JoinGroupResponse.JoinGroupResponseMember
        response = JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=self.member._assignors[0],
            leader=leader,
            member_id="me",
            members=[make(member_id=name, metadata=data) for name, data in members.items()],
        )
        self.member.answered(self.sent(JoinGroupRequest), response, self.now_ms)

    def sync(self, *numbers: int) -> SyncGroupRequest:
        """Give the member partitions of the topic `t`."""
        request = self.sent(SyncGroupRequest)
        response = SyncGroupResponse(assignment=write_assignment(parts(*numbers)))
        self.member.answered(request, response, self.now_ms)
        return request

    def own(self, *numbers: int) -> None:
        """Let the member join and own these."""
        self.join()
        self.sync(*numbers)
        self.member.rebalance_done(self.now_ms)
        assert self.member.state is MemberState.STABLE

    def rebalance(self) -> None:
        """Let a heartbeat tell of a rebalance."""
        self.now_ms += INTERVAL_MS
        self.refuse(self.sent(HeartbeatRequest), ErrorCode.REBALANCE_IN_PROGRESS)


def test_a_new_member_joins_in_two_steps():
    bench = Bench()
    first = bench.sent(JoinGroupRequest)
    assert first.member_id == ""
    response = JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="me")
    assert bench.member.answered(first, response, 0) is None
    assert bench.sent(JoinGroupRequest).member_id == "me"


def test_a_follower_sends_no_assignments_and_gets_its_own():
    bench = Bench()
    bench.join()
    request = bench.sync(0, 1)
    assert (request.generation_id, request.member_id, request.assignments) == (1, "me", [])
    assert bench.member.rebalance == Rebalance(assigned=parts(0, 1))
    bench.member.rebalance_done(0)
    assert bench.member.metadata[1:3] == (1, "me")
    assert bench.member.next_step(0) == Wait(INTERVAL_MS)


def test_the_leader_assigns_by_new_metadata():
    bench = Bench()
    bench.join(
        leader="me",
        me=write_subscription({"t"}, (), -1),
        you=write_subscription({"t", "u"}, (), -1),
    )
    assert bench.member.next_step(0) == CountPartitions(frozenset({"t", "u"}))
    bench.member.partition_counts({"t": 3})
    request = bench.sent(SyncGroupRequest)
    assert {each.member_id: read_assignment(each.assignment) for each in request.assignments} == {
        "me": parts(0, 1),
        "you": parts(2),
    }


def test_the_leader_joins_again_when_a_topic_gets_partitions_or_comes():
    bench = Bench()
    bench.join(
        leader="me",
        me=write_subscription({"t"}, (), -1),
        you=write_subscription({"u"}, (), -1),
    )
    bench.member.next_step(0)
    bench.member.partition_counts({"t": 3})
    bench.sync(0, 1, 2)
    bench.member.rebalance_done(0)
    bench.member.partitions_changed({"t": 3, "other": 9})
    assert bench.member.state is MemberState.STABLE
    bench.member.partitions_changed({"t": 3, "u": 1})
    assert bench.member.state is MemberState.PREPARING_REBALANCE


def test_a_static_leader_that_comes_back_assigns_nothing():
    bench = Bench(instance_id="i")
    make = JoinGroupResponse.JoinGroupResponseMember
    response = JoinGroupResponse(
        generation_id=4,
        protocol_name="range",
        leader="me",
        member_id="me",
        skip_assignment=True,
        members=[make(member_id="me", metadata=write_subscription({"t"}, (), -1))],
    )
    bench.member.answered(bench.sent(JoinGroupRequest), response, 0)
    assert isinstance(bench.member.next_step(0), CountPartitions)
    bench.member.partition_counts({"t": 3})
    assert bench.sync(0).assignments == []
    bench.member.rebalance_done(0)
    bench.member.partitions_changed({"t": 4})
    assert bench.member.state is MemberState.PREPARING_REBALANCE


def test_an_eager_member_gives_everything_up_before_it_joins_and_lives_meanwhile():
    bench = Bench()
    bench.own(0, 1)
    bench.rebalance()
    assert bench.member.rebalance == Rebalance(parts(0, 1))
    bench.now_ms += INTERVAL_MS
    bench.refuse(bench.sent(HeartbeatRequest), ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.member.rebalance == Rebalance(parts(0, 1))
    bench.member.rebalance_done(bench.now_ms)
    metadata = bench.sent(JoinGroupRequest).protocols[0].metadata
    assert read_subscription(metadata).owned == frozenset()


def test_a_cooperative_member_keeps_what_it_has_and_joins_again_once_it_gave_some_up():
    bench = Bench("cooperative-sticky")
    bench.own(0, 1)
    bench.rebalance()
    joining = bench.sent(JoinGroupRequest)
    said = read_subscription(joining.protocols[0].metadata)
    assert (said.owned, said.generation) == (parts(0, 1), 1)
    bench.join()
    bench.sync(1)
    assert bench.member.rebalance == Rebalance(parts(0))
    bench.member.rebalance_done(bench.now_ms)
    said = read_subscription(bench.sent(JoinGroupRequest).protocols[0].metadata)
    assert (said.owned, said.generation) == (parts(1), 2)


def test_a_member_whose_assignors_differ_in_that_is_eager():
    bench = Bench("cooperative-sticky", "range")
    bench.own(0)
    bench.rebalance()
    assert bench.member.rebalance == Rebalance(parts(0))


def test_a_heartbeat_of_before_says_nothing_about_the_join_under_way():
    bench = Bench()
    bench.own(0)
    bench.now_ms += INTERVAL_MS
    late = bench.sent(HeartbeatRequest)
    bench.rebalance()
    bench.member.rebalance_done(bench.now_ms)
    bench.sent(JoinGroupRequest)
    bench.refuse(late, ErrorCode.REBALANCE_IN_PROGRESS)
    assert bench.member.state is MemberState.JOINING


@pytest.mark.parametrize(
    ("code", "member_id"),
    [(ErrorCode.ILLEGAL_GENERATION, "me"), (ErrorCode.UNKNOWN_MEMBER_ID, "")],
)
def test_a_fenced_member_loses_what_it_has_and_joins_again(code, member_id):
    bench = Bench()
    bench.own(0)
    bench.now_ms = INTERVAL_MS
    bench.refuse(bench.sent(HeartbeatRequest), code)
    assert bench.member.rebalance == Rebalance(parts(0), is_lost=True)
    assert bench.member.metadata[1:3] == (-1, "")
    bench.member.rebalance_done(bench.now_ms)
    assert bench.sent(JoinGroupRequest).member_id == member_id


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_SESSION_TIMEOUT,
        999,
    ],
)
def test_other_errors_end_the_membership(code):
    bench = Bench()
    bench.refuse(bench.sent(JoinGroupRequest), code)
    assert bench.member.failure is not None
    assert bench.member.next_step(0) == Wait(None)


@pytest.mark.parametrize("kind", [JoinGroupRequest, SyncGroupRequest, HeartbeatRequest])
def test_a_coordinator_that_is_not_ready_is_queried_the_same_again(kind):
    bench = Bench()
    if kind is SyncGroupRequest:
        bench.join()
    elif kind is HeartbeatRequest:
        bench.own(0)
        bench.now_ms = INTERVAL_MS
    error = bench.refuse(bench.sent(kind), ErrorCode.NOT_COORDINATOR)
    assert error.code == ErrorCode.NOT_COORDINATOR
    bench.sent(kind)
    bench.member.unanswered(bench.now_ms)
    bench.sent(kind)


def test_a_static_member_does_not_leave():
    for instance, is_sent in ((None, True), ("i", False)):
        bench = Bench(instance_id=instance)
        bench.own(0)
        leaving = bench.member.leave()
        assert isinstance(leaving, LeaveGroupRequest) == is_sent


def test_who_does_not_poll_leaves_and_joins_when_it_polls():
    bench = Bench()
    bench.own(0)
    bench.member.poll_expired()
    leaving = bench.sent(LeaveGroupRequest)
    assert [each.member_id for each in leaving.members] == ["me"]
    assert bench.member.rebalance == Rebalance(parts(0), is_lost=True)
    bench.member.rebalance_done(0)
    assert bench.sent(JoinGroupRequest).member_id == ""


def test_another_subscription_makes_it_join_again():
    bench = Bench("cooperative-sticky")
    bench.own(0)
    bench.member.subscribe(frozenset({"u"}))
    assert bench.member.rebalance == Rebalance(parts(0))


def test_an_assignment_that_is_none_ends_the_membership():
    bench = Bench()
    bench.join()
    response = SyncGroupResponse(assignment=b"\0")
    bench.member.answered(bench.sent(SyncGroupRequest), response, 0)
    assert bench.member.failure is not None
    assert "assignment that is none" in str(bench.member.failure)


def test_members_whose_metadata_cannot_be_read_get_nothing():
    bench = Bench()
    bench.join(leader="me", me=write_subscription({"t"}, (), -1), you=b"\xff\xff\xff")
    assert bench.member.next_step(0) == CountPartitions(frozenset({"t"}))
    bench.member.partition_counts({"t": 2})
    given = {each.member_id: each.assignment for each in bench.sync(0).assignments}
    assert read_assignment(given["me"]) == parts(0, 1)
    assert read_assignment(given["you"]) == frozenset()


def test_every_state_can_be_left_and_reached():
    sources = {row.source for row in TRANSITIONS.transitions}
    targets = {row.target for row in TRANSITIONS.transitions}
    assert sources == targets == set(MemberState)

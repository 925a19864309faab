"""A member of a group of KIP-848, as a state machine: what it sends when, and what it makes of
the answers. Times are milliseconds."""

from __future__ import annotations

import pytest

from odradek.client.consumer.group.consumer_membership import (
    TRANSITIONS,
    ConsumerMembership,
    MemberState,
)
from odradek.client.consumer.group.membership import Rebalance, ResolveTopics, Send, Wait
from odradek.common.errors import ErrorCode
from odradek.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

A_ID, B_ID = b"a" * 16, b"b" * 16
INTERVAL_MS = 3_000
TOPICS = frozenset({"a", "b"})


def parts(topic: str, *numbers: int) -> frozenset[tuple[str, int]]:
    return frozenset((topic, number) for number in numbers)


class Bench:
    """A membership that knows the topics' names, and a coordinator that answers as it is told."""

    def __init__(self, **options) -> None:
        self.member = ConsumerMembership("g", "me", **options)
        self.member.topic_names({A_ID: "a", B_ID: "b"})
        self.now_ms = 0
        self.member.subscribe(TOPICS)

    def sent(self) -> ConsumerGroupHeartbeatRequest:
        step = self.member.next_step(self.now_ms)
        assert isinstance(step, Send)
        assert isinstance(step.request, ConsumerGroupHeartbeatRequest)
        return step.request

    def answer(
        self,
        request: ConsumerGroupHeartbeatRequest,
        epoch: int = 1,
        error: int = 0,
        **assigned: tuple[int, ...],
    ):
        make = ConsumerGroupHeartbeatResponse.TopicPartitions
        ids = {"a": A_ID, "b": B_ID, "unknown": b"u" * 16}
        assignment = ConsumerGroupHeartbeatResponse.Assignment(
            topic_partitions=[
                make(topic_id=ids[topic], partitions=list(numbers))
                for topic, numbers in assigned.items()
            ]
        )
        response = ConsumerGroupHeartbeatResponse(
            error_code=error,
            member_id="me",
            member_epoch=epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            assignment=assignment if assigned else None,
        )
        return self.member.answered(request, response, self.now_ms)

    def join(self, **assigned: tuple[int, ...]) -> None:
        """Become a member that owns this."""
        self.answer(self.sent(), 1, **assigned)
        assert self.member.rebalance is not None
        self.member.rebalance_done(self.now_ms)
        self.answer(self.sent(), 1)
        assert self.member.state is MemberState.STABLE


def test_the_first_heartbeat_says_everything_and_the_next_only_that_it_lives():
    bench = Bench(instance_id="i", assignor="range", rebalance_timeout_ms=77)
    first = bench.sent()
    assert (first.member_id, first.member_epoch, first.instance_id) == ("me", 0, "i")
    assert first.subscribed_topic_names == ["a", "b"]
    assert (first.server_assignor, first.rebalance_timeout_ms) == ("range", 77)
    assert first.topic_partitions == []
    bench.answer(first, 5)
    assert bench.member.next_step(0) == Wait(INTERVAL_MS)
    bench.now_ms = INTERVAL_MS
    second = bench.sent()
    assert (second.member_epoch, second.instance_id) == (5, "i")
    assert second.subscribed_topic_names is None
    assert second.topic_partitions is None
    assert second.rebalance_timeout_ms == -1


def test_what_is_revoked_is_acknowledged_only_when_the_caller_is_done():
    bench = Bench()
    bench.join(a=(0, 1))
    bench.now_ms = INTERVAL_MS
    bench.answer(bench.sent(), 1, a=(1,), b=(2,))
    assert bench.member.rebalance == Rebalance(parts("a", 0), parts("b", 2))
    # The caller takes its time, and the member goes on to live.
    bench.now_ms = 2 * INTERVAL_MS
    alive = bench.sent()
    assert alive.topic_partitions is None
    bench.answer(alive, 1)
    bench.member.rebalance_done(bench.now_ms)
    acknowledgement = bench.sent()
    assert [(t.topic_id, t.partitions) for t in acknowledgement.topic_partitions or ()] == [
        (A_ID, [1]),
        (B_ID, [2]),
    ]
    bench.answer(acknowledgement, 2)
    assert bench.member.state is MemberState.STABLE
    assert bench.member.metadata[1:3] == (2, "me")
    assert bench.member.rebalance is None


def test_an_answer_to_a_heartbeat_of_before_acknowledges_nothing():
    bench = Bench()
    bench.join(a=(0,))
    bench.now_ms = INTERVAL_MS
    bench.answer(bench.sent(), 1, a=(0, 1))
    bench.now_ms = 2 * INTERVAL_MS
    under_way = bench.sent()
    assert bench.member.rebalance == Rebalance(assigned=parts("a", 1))
    bench.member.rebalance_done(bench.now_ms)
    bench.answer(under_way, 1)
    assert bench.member.state is MemberState.ACKNOWLEDGING
    assert bench.sent().topic_partitions is not None


def test_a_target_that_changes_meanwhile_is_reconciled_next():
    bench = Bench()
    bench.answer(bench.sent(), 1, a=(0,))
    assert bench.member.rebalance == Rebalance(assigned=parts("a", 0))
    bench.now_ms = INTERVAL_MS
    bench.answer(bench.sent(), 1, a=(0, 1))
    bench.member.rebalance_done(bench.now_ms)
    bench.answer(bench.sent(), 2)
    assert bench.member.rebalance == Rebalance(assigned=parts("a", 1))


def test_topics_without_a_name_are_requested_and_the_others_are_not_kept_waiting():
    bench = Bench()
    bench.answer(bench.sent(), 1, a=(0,), unknown=(3,))
    assert bench.member.next_step(0) == ResolveTopics(frozenset({b"u" * 16}))
    bench.member.topic_names({})
    assert bench.member.rebalance == Rebalance(assigned=parts("a", 0))
    bench.member.rebalance_done(0)
    bench.answer(bench.sent(), 1)
    assert bench.member.rebalance is None
    bench.now_ms = 1_000
    assert bench.member.next_step(1_000) == ResolveTopics(frozenset({b"u" * 16}))
    bench.member.topic_names({b"u" * 16: "u"})
    assert bench.member.rebalance == Rebalance(assigned=parts("u", 3))


@pytest.mark.parametrize("code", [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_what_it_has_and_joins_again(code):
    bench = Bench()
    bench.join(a=(0,))
    bench.now_ms = INTERVAL_MS
    bench.answer(bench.sent(), error=code)
    assert bench.member.rebalance == Rebalance(parts("a", 0), is_lost=True)
    assert bench.member.metadata[1:3] == (-1, "")
    assert bench.member.next_step(bench.now_ms) == Wait(None)
    bench.member.rebalance_done(bench.now_ms)
    again = bench.sent()
    assert (again.member_epoch, again.subscribed_topic_names) == (0, ["a", "b"])
    assert again.topic_partitions == []


def test_without_an_answer_everything_is_said_again():
    bench = Bench()
    bench.join(a=(0,))
    bench.now_ms = INTERVAL_MS
    bench.sent()
    bench.member.unanswered(bench.now_ms)
    again = bench.sent()
    assert again.member_epoch == 1
    assert again.subscribed_topic_names == ["a", "b"]
    assert [t.partitions for t in again.topic_partitions or ()] == [[0]]


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_a_coordinator_that_is_not_ready_is_queried_again_and_nothing_is_lost(code):
    bench = Bench()
    bench.join(a=(0,))
    bench.now_ms = INTERVAL_MS
    error = bench.answer(bench.sent(), error=code)
    assert error is not None
    assert error.code == code
    assert bench.member.rebalance is None
    assert bench.sent().member_epoch == 1


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        999,
    ],
)
def test_other_errors_end_the_membership(code):
    bench = Bench()
    bench.join(a=(0,))
    bench.now_ms = INTERVAL_MS
    bench.answer(bench.sent(), error=code)
    assert bench.member.failure is not None
    assert bench.member.rebalance == Rebalance(parts("a", 0), is_lost=True)
    bench.member.rebalance_done(bench.now_ms)
    assert bench.member.rebalance is None
    assert bench.member.next_step(bench.now_ms) == Wait(None)
    assert bench.member.leave() is None


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_leaving_says_whether_the_member_comes_back(instance, epoch):
    bench = Bench(instance_id=instance)
    bench.join(a=(0,))
    leaving = bench.member.leave()
    assert leaving is not None
    assert (leaving.member_epoch, leaving.instance_id) == (epoch, instance)
    assert bench.member.leave() is None


def test_who_does_not_poll_leaves_at_once_and_joins_when_it_polls():
    bench = Bench()
    bench.join(a=(0,))
    bench.member.poll_expired()
    assert bench.member.rebalance == Rebalance(parts("a", 0), is_lost=True)
    leaving = bench.sent()
    assert leaving.member_epoch == -1
    bench.answer(leaving, -1)
    assert bench.member.next_step(0) == Wait(None)
    bench.member.rebalance_done(0)
    assert bench.sent().member_epoch == 0


def test_another_subscription_is_said_at_once():
    bench = Bench()
    bench.join(a=(0,))
    bench.member.subscribe(frozenset({"a"}))
    assert bench.sent().subscribed_topic_names == ["a"]


def test_every_state_can_be_left_and_reached():
    sources = {row.source for row in TRANSITIONS.transitions}
    targets = {row.target for row in TRANSITIONS.transitions}
    assert sources == targets == set(MemberState)

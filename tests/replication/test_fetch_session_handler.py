"""The client's half of a fetch session, with the broker's half on the other side."""

from __future__ import annotations

import random

import pytest

from odradek.broker.request.fetch_sessions import (
    EPOCH_MAX,
    INITIAL_EPOCH,
    FetchSession,
    FetchSessionCache,
    PartitionKey,
    RequestedPartition,
)
from odradek.common.errors import ErrorCode, KafkaError
from odradek.common.sentinels import FINAL_EPOCH
from odradek.replication.fetcher.fetch_session_handler import FetchSessionHandler
from odradek.replication.fetcher.plans import (
    FetchAnswer,
    FetchedPartition,
    FetchPlan,
    ForgottenPartition,
    PlannedPartition,
)
from odradek.replication.purgatory.delayed_fetch import FetchPurgatory
from odradek.runtime.clock import ManualClock
from odradek.runtime.timers import Timers
from odradek.storage import TopicPartition

IDS = {"t": b"t" * 16, "u": b"u" * 16}
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
GOOD = FetchedPartition(ErrorCode.NONE, 5, 0)


def requested(
    *topic_partitions: TopicPartition, offset: int = 0, **ids: bytes
) -> dict[TopicPartition, PlannedPartition]:
    known = {**IDS, **ids}
    return {
        each: PlannedPartition(known[each.topic], offset, 0, 1000, 3, -1)
        for each in topic_partitions
    }


class BrokerSide:
    """Takes fetches as a broker's handler does, by topic id."""

    def __init__(self) -> None:
        purgatory = FetchPurgatory(Timers(), ManualClock())
        self.cache = FetchSessionCache(10, random.Random(1), purgatory)
        self.session: FetchSession | None = None

    def take(self, plan: FetchPlan) -> FetchAnswer:
        """Update the session; a good answer for each partition it then has."""
        requested = [
            RequestedPartition(
                (requested.topic_id, tp.partition),
                requested.fetch_offset,
                requested.max_bytes,
                requested.current_leader_epoch,
                requested.last_fetched_epoch,
                requested.log_start_offset,
            )
            for tp, requested in plan.to_send.items()
        ]
        if plan.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self.cache.close(plan.session_id)
            self.session = self.cache.create(True, 0)
            assert self.session is not None
            self.session.update(requested, ())
        else:
            try:
                self.session = self.cache.use(plan.session_id, plan.session_epoch, True, 0)
            except KafkaError as refusal:
                return FetchAnswer(refusal.code, 0, {})
            forgotten: list[PartitionKey] = [
                (topic_id, tp.partition) for tp, topic_id in (*plan.to_forget, *plan.to_replace)
            ]
            self.session.update(requested, forgotten)
        return FetchAnswer(ErrorCode.NONE, self.session.id, dict.fromkeys(plan.requested, GOOD))

    @property
    def partitions(self) -> dict[PartitionKey, int]:
        """What the session asks for, and from which offset on."""
        assert self.session is not None
        return {
            key: cached.requested.fetch_offset for key, cached in self.session.partitions.items()
        }


@pytest.fixture
def handler() -> FetchSessionHandler:
    return FetchSessionHandler(1)


@pytest.fixture
def broker() -> BrokerSide:
    return BrokerSide()


def exchange(
    handler: FetchSessionHandler,
    broker: BrokerSide,
    partitions: dict[TopicPartition, PlannedPartition],
) -> FetchPlan:
    """One fetch of just these; both sides agree afterwards."""
    plan = handler.build({each: partitions.get(each) for each in (T0, T1, U0)})
    assert handler.handle_answer(broker.take(plan))
    assert broker.partitions == {
        (each.topic_id, tp.partition): each.fetch_offset for tp, each in partitions.items()
    }
    return plan


def test_the_first_fetch_names_everything_and_the_next_only_what_changed(
    handler: FetchSessionHandler, broker: BrokerSide
) -> None:
    """KIP-227: the session is opened by a full fetch and goes on with incremental ones."""
    first = exchange(handler, broker, requested(T0, T1))
    assert (first.session_id, first.session_epoch) == (0, 0)
    assert list(first.to_send) == [T0, T1]
    second = exchange(handler, broker, requested(T0, T1))
    assert second.session_id == handler.session_id != 0
    assert (second.session_epoch, second.to_send, second.to_forget) == (1, {}, ())
    third = exchange(handler, broker, {**requested(T0, offset=9), **requested(T1)})
    assert (third.session_epoch, list(third.to_send)) == (2, [T0])


def test_partitions_are_added_and_forgotten(
    handler: FetchSessionHandler, broker: BrokerSide
) -> None:
    exchange(handler, broker, requested(T0, T1))
    plan = exchange(handler, broker, requested(T1, U0))
    assert list(plan.to_send) == [U0]
    assert plan.to_forget == (ForgottenPartition(T0, IDS["t"]),)
    assert exchange(handler, broker, {}).to_forget == (
        ForgottenPartition(T1, IDS["t"]),
        ForgottenPartition(U0, IDS["u"]),
    )


def test_one_in_for_one_out_forgets_as_well(
    handler: FetchSessionHandler, broker: BrokerSide
) -> None:
    exchange(handler, broker, requested(T0))
    assert exchange(handler, broker, requested(T1)).to_forget == (ForgottenPartition(T0, IDS["t"]),)


def test_a_topic_made_anew_takes_the_place_of_the_one_before(
    handler: FetchSessionHandler, broker: BrokerSide
) -> None:
    exchange(handler, broker, requested(T0, U0))
    plan = exchange(handler, broker, requested(T0, U0, t=b"n" * 16))
    assert list(plan.to_send) == [T0]
    assert plan.to_replace == (ForgottenPartition(T0, IDS["t"]),)
    assert plan.to_forget == ()
    assert plan.topic_names[b"n" * 16] == "t"


@pytest.mark.parametrize("is_lost", [True, False])
def test_what_the_broker_has_forgotten_is_opened_anew(
    handler: FetchSessionHandler, broker: BrokerSide, is_lost: bool
) -> None:
    exchange(handler, broker, requested(T0))
    assert broker.session is not None
    if is_lost:
        broker.cache.close(handler.session_id)
    else:
        broker.session.epoch = 17
    answer = broker.take(handler.build(requested(T0)))
    assert answer.error is (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND if is_lost else ErrorCode.INVALID_FETCH_SESSION_EPOCH
    )
    assert not handler.handle_answer(answer)
    plan = exchange(handler, broker, requested(T0))
    assert plan.session_epoch == 0
    assert list(plan.to_send) == [T0]
    assert len(broker.cache) == 1  # the other one is closed by its id


def test_after_a_lost_connection_the_session_is_closed_and_another_opened(
    handler: FetchSessionHandler, broker: BrokerSide
) -> None:
    exchange(handler, broker, requested(T0))
    lost_id = handler.session_id
    handler.build(requested(T0, offset=4))
    handler.handle_error()
    plan = exchange(handler, broker, requested(T0, offset=4))
    assert (plan.session_id, plan.session_epoch) == (lost_id, 0)
    assert len(broker.cache) == 1


def test_a_broker_without_room_for_sessions_is_queried_in_full_each_time(
    handler: FetchSessionHandler,
) -> None:
    for _ in range(2):
        plan = handler.build(requested(T0))
        assert (plan.session_id, plan.session_epoch, list(plan.to_send)) == (0, 0, [T0])
        assert handler.handle_answer(FetchAnswer(ErrorCode.NONE, 0, {T0: GOOD}))


def test_the_epoch_after_the_last_is_one(handler: FetchSessionHandler, broker: BrokerSide) -> None:
    exchange(handler, broker, requested(T0))
    assert broker.session is not None
    broker.session.epoch = handler.session_epoch = EPOCH_MAX
    exchange(handler, broker, requested(T0))
    assert handler.session_epoch == 1
    exchange(handler, broker, requested(T0))


@pytest.mark.parametrize(
    "answer",
    [
        FetchAnswer(ErrorCode.NONE, 9, {T0: GOOD}),  # one is missing
        FetchAnswer(ErrorCode.NONE, 9, {T0: GOOD, T1: GOOD, U0: GOOD}),
        FetchAnswer(ErrorCode.NONE, 9, {T0: GOOD, U0: GOOD}),
        FetchAnswer(ErrorCode.NONE, 9, {T0: GOOD, T1: GOOD}, 0, frozenset({b"x" * 16})),
        FetchAnswer(ErrorCode.NONE, 0, {}, throttle_time_ms=10),
    ],
)
def test_a_full_answer_that_is_not_about_the_session_is_not_used(
    handler: FetchSessionHandler, answer: FetchAnswer
) -> None:
    handler.build(requested(T0, T1))
    assert not handler.handle_answer(answer)
    assert handler.is_full
    assert handler.session_id == 0


def test_an_incremental_answer_may_leave_out_and_not_add(
    handler: FetchSessionHandler, broker: BrokerSide
) -> None:
    exchange(handler, broker, requested(T0, T1))
    handler.build(requested(T0, T1))
    assert handler.handle_answer(FetchAnswer(ErrorCode.NONE, handler.session_id, {}))
    handler.build(requested(T0, T1))
    assert not handler.handle_answer(FetchAnswer(ErrorCode.NONE, handler.session_id, {U0: GOOD}))
    assert handler.is_full

"""A fetcher whose partitions have no news asks again without looking at each of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scripted_leader import Followers, Replica, ScriptedLeader, tp

from odradek.common.errors import ErrorCode
from odradek.replication.fetcher import fetcher as fetcher_module
from odradek.replication.fetcher.fetcher import ROUND_MS
from odradek.replication.fetcher.plans import FetchAnswer, FetchedPartition, FetchPlan, WaitPlan
from odradek.replication.partition.partition import Partition
from odradek.storage import TopicPartition

PARTITIONS = 50
FETCHES = 20
T0 = tp(0)


class CountedFollowers(Followers):
    """Followers that count how often one of them is looked at."""

    looks = 0

    def partition_of(self, topic_partition: TopicPartition) -> Partition | None:
        self.looks += 1
        return super().partition_of(topic_partition)


class Resting:
    """A follower of many partitions that has all that its leader has."""

    def __init__(self, folder: Path) -> None:
        tps = [tp(index) for index in range(PARTITIONS)]
        self.leading = {each: Replica(folder / "leader", each) for each in tps}
        self.following = {each: Replica(folder / "follower", each) for each in tps}
        for replica in self.leading.values():
            replica.lead(0, b"a")
        self.leader = ScriptedLeader(self.leading, 0)
        self.followers = CountedFollowers(self.following)
        self.fetcher = self.followers.fetcher
        self.followers.follow(0)
        self.followers.catch_up(self.leader)
        self.fetch_without_news()
        self.followers.looks = 0

    def fetch(self, now_ms: int = 0) -> FetchPlan:
        plan = self.fetcher.next_request(now_ms)
        assert isinstance(plan, FetchPlan), plan
        return plan

    def fetch_without_news(self, now_ms: int = 0) -> FetchPlan:
        """One fetch, and the answer of a session in which nothing has changed."""
        plan = self.fetch(now_ms)
        answer = FetchAnswer(ErrorCode.NONE, plan.session_id, {})
        self.fetcher.fetch_answered(plan, answer, now_ms)
        return plan

    def rest(self) -> None:
        """Fetch often enough that the next one should look at nothing."""
        self.fetch_without_news()
        self.fetch_without_news()
        self.followers.looks = 0


@pytest.fixture
def resting(tmp_path: Path) -> Resting:
    return Resting(tmp_path)


def test_fetches_without_news_look_at_the_partitions_once(resting: Resting) -> None:
    asks = [resting.fetch_without_news() for _ in range(FETCHES)]
    assert resting.followers.looks <= PARTITIONS
    assert all(not plan.to_send and not plan.to_forget for plan in asks)
    epochs = [plan.session_epoch for plan in asks]
    assert epochs == list(range(epochs[0], epochs[0] + FETCHES))


def test_what_is_in_an_answer_is_requested_anew(resting: Resting) -> None:
    resting.rest()
    resting.leading[T0].lead(0, b"b")
    resting.followers.catch_up(resting.leader)
    assert resting.following[T0].values == [b"a", b"b"]


def test_of_many_partitions_some_are_looked_at_now_and_then_and_so_all_in_turn(
    resting: Resting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher_module, "LOOKS_OF_ROUND", 20)
    for replica in resting.following.values():
        replica.log.advance_log_start_offset(1)
    reported: set[TopicPartition] = set()
    for number in range(1, 8):
        resting.followers.looks = 0
        reported.update(resting.fetch_without_news(number * ROUND_MS).to_send)
        assert resting.followers.looks <= 20
    assert len(reported) == PARTITIONS


def test_news_of_one_partition_is_work_for_one(resting: Resting) -> None:
    resting.rest()
    for number in range(1, FETCHES + 1):
        resting.leading[T0].lead(0, b"b")
        plan = resting.fetch()
        data = resting.leader.fetch(plan).partitions[T0]
        answer = FetchAnswer(ErrorCode.NONE, plan.session_id, {T0: data})
        resting.fetcher.fetch_answered(plan, answer, 0)
        assert list(resting.fetch_without_news().to_send) == [T0]
        assert resting.following[T0].log.log_end_offset == 1 + number
    assert resting.followers.looks <= 3 * FETCHES  # where to append, and what to request next


def test_a_log_start_that_an_answer_moves_is_reported_by_the_next_fetch(resting: Resting) -> None:
    resting.rest()
    plan = resting.fetch()
    data = FetchedPartition(ErrorCode.NONE, high_watermark=1, log_start_offset=1)
    resting.fetcher.fetch_answered(
        plan, FetchAnswer(ErrorCode.NONE, plan.session_id, {T0: data}), 0
    )
    assert resting.following[T0].log.log_start_offset == 1
    assert resting.fetch().requested[T0].log_start_offset == 1


def test_a_log_start_that_retention_moves_is_reported_after_a_while(resting: Resting) -> None:
    resting.rest()
    resting.following[T0].log.advance_log_start_offset(1)
    plan = resting.fetch_without_news(ROUND_MS)
    assert {each: requested.log_start_offset for each, requested in plan.to_send.items()} == {T0: 1}


def test_partitions_that_come_and_go_are_in_the_next_fetch(resting: Resting) -> None:
    resting.rest()
    resting.fetcher.remove_partitions([T0])
    assert [each.topic_partition for each in resting.fetch_without_news().to_forget] == [T0]
    resting.rest()
    resting.followers.follow(0, T0)
    assert list(resting.fetch_without_news().to_send) == [T0]


def test_a_fetcher_that_follows_nothing_any_more_asks_nothing(resting: Resting) -> None:
    resting.rest()
    resting.fetcher.remove_all_partitions()
    assert len(resting.fetch_without_news().to_forget) == PARTITIONS
    assert isinstance(resting.fetcher.next_request(0), WaitPlan)


def test_a_session_that_is_lost_is_opened_with_all_partitions(resting: Resting) -> None:
    resting.rest()
    resting.fetcher.request_abandoned()
    plan = resting.fetch()
    assert plan.session_epoch == 0
    assert len(plan.to_send) == PARTITIONS

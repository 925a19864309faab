"""A follower's log is cut where it parts from its leader's, with epochs and without."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from support.scripted_leader import (
    FOLLOWER,
    NOW_MS,
    Followers,
    Replica,
    ScriptedLeader,
    batch,
    tp,
)

from odradek.common.errors import ErrorCode
from odradek.replication.fetcher.fetch_state import ReplicaState
from odradek.replication.fetcher.plans import EpochEnd, EpochsPlan, FetchPlan, WaitPlan
from odradek.replication.fetcher.settings import FetcherSettings
from odradek.replication.fetcher.truncation import Truncation

MakeReplica = Callable[[str], Replica]

T0 = tp(0)


@pytest.fixture
def replica(tmp_path: Path) -> MakeReplica:
    """Logs of t-0 by the name of who has them."""
    return lambda name: Replica(tmp_path / name, T0)


def followers(replica: Replica, truncation: Truncation = Truncation.FETCH) -> Followers:
    return Followers({T0: replica}, FetcherSettings(FOLLOWER, truncation=truncation))


BY_EPOCHS = [Truncation.FETCH, Truncation.EPOCH_REQUEST]
ALL_WAYS = [*BY_EPOCHS, Truncation.HIGH_WATERMARK]


@pytest.mark.parametrize("truncation", ALL_WAYS)
def test_an_old_leaders_unreplicated_tail_is_cut(replica, truncation: Truncation) -> None:
    """Article 004, maybeTruncate: a follower cuts its log to what its leader's is."""
    old, new = replica("old"), replica("new")
    old.lead(0, b"a", b"b", b"c", b"lost", b"lost too")
    old.replicate_to(new, upto=3)
    new.lead(1, b"d", b"e")
    for each in (old, new):
        each.commit(3)
    returned = followers(old, truncation)
    returned.follow(1)
    returned.catch_up(ScriptedLeader({T0: new}, 1))
    assert old.values == [b"a", b"b", b"c", b"d", b"e"]
    assert old.raw == new.raw
    assert old.log.epochs.entries == [(0, 0), (1, 3)]


@pytest.mark.parametrize("truncation", BY_EPOCHS)
def test_a_follower_that_restarts_does_not_lose_what_its_leader_has(
    replica, truncation: Truncation
) -> None:
    """KIP-101, scenario 1: the high watermark lags, but the epoch tells that all is shared."""
    leader, follower = replica("leader"), replica("follower")
    leader.lead(0, b"a", b"b")
    leader.replicate_to(follower)
    follower.commit(1)
    restarted = followers(follower, truncation)
    restarted.follow(0)
    # The leader dies before it answers: the follower leads now, and has both.
    requested = restarted.fetcher.next_request(0)
    assert not isinstance(requested, WaitPlan)
    assert follower.values == [b"a", b"b"]
    restarted.catch_up(ScriptedLeader({T0: leader}, 0))
    assert follower.values == [b"a", b"b"]


def test_without_epochs_a_follower_goes_back_to_its_high_watermark(replica) -> None:
    """Article 004, truncateToHighWatermark: it may lose what its leader has (KIP-101)."""
    follower = replica("follower")
    follower.lead(0, b"a", b"b")
    follower.commit(1)
    restarted = followers(follower, Truncation.HIGH_WATERMARK)
    restarted.follow(0)
    requested = restarted.fetcher.next_request(0)
    assert isinstance(requested, FetchPlan)
    assert follower.values == [b"a"]
    assert requested.requested[T0].fetch_offset == 1
    assert requested.requested[T0].last_fetched_epoch == -1


@pytest.mark.parametrize("truncation", ALL_WAYS)
def test_an_empty_log_has_no_epoch_and_is_fetched_from_its_high_watermark(
    replica, truncation: Truncation
) -> None:
    leader = replica("leader")
    leader.lead(0, b"a")
    follower = replica("follower")
    new = followers(follower, truncation)
    new.follow(0)
    requested = new.catch_up(ScriptedLeader({T0: leader}, 0))
    assert not any(isinstance(plan, EpochsPlan) for plan in requested)
    assert follower.raw == leader.raw


@pytest.mark.parametrize("truncation", BY_EPOCHS)
def test_logs_that_parted_twice_agree_after_several_rounds(replica, truncation: Truncation) -> None:
    """KIP-279: after fast failovers both have epochs that the other has not."""
    a, b = replica("a"), replica("b")
    a.lead(0, b"0", b"1")
    a.replicate_to(b)
    a.lead(1, b"a2", b"a3")  # unclean elections: neither has what the other wrote
    b.lead(2, b"b2")
    a.lead(3, b"a4")
    b.lead(4, b"b3")
    a.lead(5, b"a5", b"a6")
    b.lead(6, b"b4")
    behind = followers(a, truncation)
    behind.follow(6)
    requested = behind.catch_up(ScriptedLeader({T0: b}, 6))
    assert a.values == [b"0", b"1", b"b2", b"b3", b"b4"]
    assert a.raw == b.raw
    assert a.log.epochs.entries == b.log.epochs.entries
    if truncation is Truncation.EPOCH_REQUEST:
        epochs = [
            plan.partitions[T0].leader_epoch for plan in requested if isinstance(plan, EpochsPlan)
        ]
        assert epochs == [5, 3, 1]


@pytest.mark.parametrize("truncation", BY_EPOCHS)
def test_the_end_is_the_least_of_both_ends_of_the_shared_epoch(
    replica, truncation: Truncation
) -> None:
    a, b = replica("a"), replica("b")
    a.lead(0, b"0", b"1", b"2")
    a.replicate_to(b, upto=2)
    b.lead(1, b"b2")
    a.lead(0, b"3")
    behind = followers(a, truncation)
    behind.follow(1)
    behind.catch_up(ScriptedLeader({T0: b}, 1))
    assert a.values == [b"0", b"1", b"b2"]


@pytest.mark.parametrize("truncation", BY_EPOCHS)
def test_an_epoch_without_records_is_forgotten_though_nothing_is_cut(
    replica, truncation: Truncation
) -> None:
    """Who led for a moment has noted an epoch that nobody else has heard of."""
    a, b = replica("a"), replica("b")
    a.lead(0, b"0")
    a.replicate_to(b)
    a.lead(1)
    b.lead(2, b"1")
    behind = followers(a, truncation)
    behind.follow(2)
    behind.catch_up(ScriptedLeader({T0: b}, 2))
    assert a.values == [b"0", b"1"]
    assert a.log.epochs.entries == [(0, 0), (2, 1)]


def test_a_batch_is_cut_as_a_whole_and_fetched_again(tmp_path: Path) -> None:
    follower = Replica(tmp_path / "follower", T0)
    leader = Replica(tmp_path / "leader", T0)
    follower.log.append_as_leader(batch(b"a", b"b", b"c"), leader_epoch=0, now_ms=NOW_MS)
    follower.log.flush_appends()
    leader.lead(0, b"a", b"b")
    leader.lead(1, b"d")
    behind = followers(follower, Truncation.EPOCH_REQUEST)
    behind.follow(1)
    behind.catch_up(ScriptedLeader({T0: leader}, 1))
    assert follower.raw == leader.raw


def test_a_warning_tells_of_a_cut_below_the_high_watermark(replica, caplog) -> None:
    """Article 004, truncate: what counted as replicated is lost by an unclean election."""
    old, new = replica("old"), replica("new")
    old.lead(0, b"a", b"b", b"c")
    old.replicate_to(new, upto=1)
    old.commit(3)
    new.lead(1, b"d")
    returned = followers(old)
    returned.follow(1)
    with caplog.at_level(logging.WARNING):
        returned.catch_up(ScriptedLeader({T0: new}, 1))
    assert old.values == [b"a", b"d"]
    assert "t-0 was truncated to offset 1, below its high watermark 3" in caplog.text


def test_high_watermark_and_log_start_wait_for_the_answer_after_the_cut(replica) -> None:
    """A diverging answer says nothing about records that are there still."""
    old, new = replica("old"), replica("new")
    old.lead(0, b"a", b"b", b"c")
    old.replicate_to(new, upto=2)
    new.lead(1, b"d", b"e")
    new.commit(4)
    old.commit(1)
    returned = followers(old)
    returned.follow(1)
    leader = ScriptedLeader({T0: new}, 1)
    leader.answer(returned.fetcher, returned.plan())
    assert (old.log.log_end_offset, old.partition.high_watermark) == (2, 1)
    leader.answer(returned.fetcher, returned.plan())
    assert (old.log.log_end_offset, old.partition.high_watermark) == (4, 4)


@pytest.mark.parametrize(
    ("end", "expected_end"),
    [
        (EpochEnd(ErrorCode.NONE, -1, -1), 1),  # unknown: the high watermark
        (EpochEnd(ErrorCode.NONE, -1, 2), 2),  # no epoch: the leader's offset
        (EpochEnd(ErrorCode.NONE, -1, 9), 4),
        (EpochEnd(ErrorCode.NONE, 2, 3), 3),  # both know it: the lesser end
        (EpochEnd(ErrorCode.NONE, 2, 9), 4),
        (EpochEnd(ErrorCode.NONE, 1, 9), 2),  # not known here: back to the one before
        (EpochEnd(ErrorCode.NONE, 7, 3), 3),  # later than any here: the leader's offset
    ],
)
def test_where_the_log_is_cut(replica, end: EpochEnd, expected_end: int) -> None:
    """Each case of Kafka's getOffsetTruncationState."""
    follower = replica("follower")
    follower.lead(0, b"a", b"b")
    follower.lead(2, b"c", b"d")
    follower.commit(1)
    behind = followers(follower, Truncation.EPOCH_REQUEST)
    behind.follow(3)
    plan = behind.plan()
    assert isinstance(plan, EpochsPlan)
    assert plan.partitions[T0] == (3, 2)
    behind.fetcher.epochs_answered(plan, {T0: end}, 0)
    assert follower.log.log_end_offset == expected_end
    state = behind.fetcher.fetch_state(T0)
    assert state is not None
    assert state.fetch_offset == expected_end
    is_partial = end.leader_epoch == 1
    assert state.state is (ReplicaState.TRUNCATING if is_partial else ReplicaState.FETCHING)


def test_epochs_of_an_older_leader_epoch_cut_nothing(replica) -> None:
    """Article 004: leadership may have moved while the leader was asked."""
    follower = replica("follower")
    follower.lead(0, b"a", b"b")
    behind = followers(follower, Truncation.EPOCH_REQUEST)
    behind.follow(1)
    plan = behind.plan()
    assert isinstance(plan, EpochsPlan)
    behind.follow(2)
    behind.fetcher.epochs_answered(plan, {T0: EpochEnd(ErrorCode.NONE, 0, 1)}, 0)
    assert follower.log.log_end_offset == 2
    behind.fetcher.remove_partitions([T0])
    behind.fetcher.epochs_answered(plan, {T0: EpochEnd(ErrorCode.NONE, 0, 1)}, 0)
    assert follower.log.log_end_offset == 2


@pytest.mark.parametrize("answered", [{}, {T0: EpochEnd(ErrorCode.NOT_LEADER_OR_FOLLOWER)}])
def test_epochs_that_are_not_reported_are_queried_again_after_a_pause(replica, answered) -> None:
    follower = replica("follower")
    follower.lead(0, b"a")
    behind = followers(follower, Truncation.EPOCH_REQUEST)
    behind.follow(1)
    plan = behind.plan(now_ms=10)
    behind.fetcher.epochs_answered(plan, answered, 10)
    pause_ms = 50 if answered else 1000
    assert behind.fetcher.next_request(10) == WaitPlan(10 + pause_ms)
    assert isinstance(behind.fetcher.next_request(10 + pause_ms), EpochsPlan)


def test_a_fenced_request_for_epochs_fails_the_partition(replica) -> None:
    follower = replica("follower")
    follower.lead(0, b"a")
    behind = followers(follower, Truncation.EPOCH_REQUEST)
    behind.follow(1)
    ScriptedLeader({T0: follower}, 2).answer(behind.fetcher, behind.plan())
    assert behind.fetcher.failed == {T0}
    assert behind.fetcher.fetch_state(T0) is None


def test_a_leader_that_talks_nonsense_is_not_queried_all_the_time(replica) -> None:
    """A diverging epoch that leads to no cut would be answered the same forever."""
    leader, follower = replica("leader"), replica("follower")
    leader.lead(0, b"a")
    leader.replicate_to(follower)
    behind = followers(follower)
    behind.follow(0)
    plan = behind.plan()
    assert isinstance(plan, FetchPlan)
    answer = ScriptedLeader({T0: leader}, 0).fetch(plan)
    nonsense = answer.partitions[T0]._replace(diverging_epoch=(0, 5))
    behind.fetcher.fetch_answered(plan, answer._replace(partitions={T0: nonsense}), 0)
    assert follower.values == [b"a"]
    state = behind.fetcher.fetch_state(T0)
    assert state is not None
    assert state.is_delayed(999)

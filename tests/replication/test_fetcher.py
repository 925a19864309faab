"""Fetching from a leader: what is asked, what is appended, and what each error leads to."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.scripted_leader import (
    FOLLOWER,
    LEADER,
    TOPIC_ID,
    Followers,
    Replica,
    ScriptedLeader,
    tp,
)

from odradek.common.errors import ErrorCode
from odradek.common.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from odradek.common.state_table import IllegalTransitionError
from odradek.replication.fetcher.fetch_state import (
    TRANSITIONS,
    FetchEvent,
    InitialFetchState,
    PartitionFetchState,
    ReplicaState,
)
from odradek.replication.fetcher.fetcher import ATTEMPTS_UNUSUAL, PASSING_ERRORS
from odradek.replication.fetcher.plans import (
    EpochsPlan,
    FetchAnswer,
    FetchedPartition,
    FetchPlan,
    ListedOffset,
    OffsetsPlan,
    WaitPlan,
)
from odradek.replication.fetcher.settings import FIRST_BACKOFF_MS, FetcherSettings
from odradek.replication.fetcher.truncation import Truncation

if TYPE_CHECKING:
    from odradek.storage import TopicPartition

BACKOFF_MS = 1000
T0, T1, T2 = tp(0), tp(1), tp(2)


class Cluster:
    """A leader of some partitions and a follower of them all."""

    def __init__(self, folder: Path, count: int = 1, **follower: object) -> None:
        tps = [tp(index) for index in range(count)]
        self.leading = {each: Replica(folder / "leader", each) for each in tps}
        self.following = {each: Replica(folder / "follower", each) for each in tps}
        self.leader = ScriptedLeader(self.leading, 0)
        self.followers = Followers(self.following, **follower)
        self.fetcher = self.followers.fetcher

    def state(self, topic_partition: TopicPartition = T0) -> PartitionFetchState:
        found = self.fetcher.fetch_state(topic_partition)
        assert found is not None
        return found

    def fetch(self, now_ms: int = 0) -> FetchPlan:
        plan = self.followers.plan(now_ms)
        assert isinstance(plan, FetchPlan), plan
        return plan

    def refuse(self, error: ErrorCode, now_ms: int = 0) -> None:
        """One fetch, of which T0 gets an error."""
        plan = self.fetch(now_ms)
        answer = FetchAnswer(ErrorCode.NONE, 1, {T0: FetchedPartition(error)})
        self.fetcher.fetch_answered(plan, answer, now_ms)


MakeCluster = Callable[..., Cluster]


@pytest.fixture
def cluster(tmp_path: Path) -> MakeCluster:
    """A leader and a follower of t-0, t-1, ...: `cluster(2)`."""
    return lambda count=1, **follower: Cluster(tmp_path, count, **follower)


# -- fetching -----------------------------------------------------------------------------


def test_truncation_comes_before_the_fetch(cluster: MakeCluster) -> None:
    """Article 004, doWork: maybeTruncate, then maybeFetch."""
    both = cluster(settings=FetcherSettings(FOLLOWER, truncation=Truncation.EPOCH_REQUEST))
    both.leading[T0].lead(0, b"a", b"b")
    both.leading[T0].replicate_to(both.following[T0], upto=1)
    both.followers.follow(0)
    kinds = [type(plan) for plan in both.followers.catch_up(both.leader)]
    assert kinds[:2] == [EpochsPlan, FetchPlan]
    assert both.following[T0].values == [b"a", b"b"]


def test_a_fetch_names_offset_epochs_log_start_and_size(cluster: MakeCluster) -> None:
    """Article 004, buildFetch: from where each partition is read, and how much at most."""
    both = cluster(settings=FetcherSettings(FOLLOWER, fetch_max_bytes=4321))
    log = both.following[T0].log
    both.following[T0].lead(3, b"a", b"b")
    both.following[T0].commit(2)
    log.advance_log_start_offset(1)
    both.followers.follow(5)
    assert both.fetch().to_send == {T0: (TOPIC_ID, 2, 1, 4321, 5, 3)}


def test_what_the_leader_sent_is_appended_byte_for_byte(cluster: MakeCluster) -> None:
    """Article 004, processPartitionData: append, then high watermark, then log start."""
    both = cluster()
    leading = both.leading[T0]
    leading.lead(0, b"a", b"b", b"c")
    leading.commit(2)
    both.followers.follow(0)
    both.followers.catch_up(both.leader)
    following = both.following[T0]
    assert following.raw == leading.raw
    assert following.partition.high_watermark == 2
    assert following.log.log_start_offset == 0
    leading.commit(3)
    leading.log.advance_log_start_offset(2)
    both.followers.catch_up(both.leader)
    assert following.partition.high_watermark == 3
    assert following.log.log_start_offset == 2


def test_the_high_watermark_is_not_beyond_the_followers_log(cluster: MakeCluster) -> None:
    both = cluster(settings=FetcherSettings(FOLLOWER, fetch_max_bytes=1))
    both.leading[T0].lead(0, b"a", b"b", b"c")
    both.leading[T0].commit(3)
    both.followers.follow(0)
    both.leader.answer(both.fetcher, both.fetch())
    assert both.following[T0].partition.high_watermark == 1


def test_who_waits_gets_one_answer(cluster: MakeCluster) -> None:
    both = cluster(3)
    for each in (T0, T2):
        both.leading[each].lead(0, b"a")
    both.followers.follow(0)
    both.leader.answer(both.fetcher, both.fetch())
    assert both.followers.appended == [[T0, T2]]
    both.leader.answer(both.fetcher, both.fetch())
    assert len(both.followers.appended) == 1
    both.leading[T2].commit(1)
    both.leader.answer(both.fetcher, both.fetch())
    assert both.followers.appended[1:] == [[T2]]


def test_who_got_records_comes_last_next_time(cluster: MakeCluster) -> None:
    """Article 004: the partition goes to the end of the map, so that none starves."""
    both = cluster(3)
    both.followers.follow(0)
    both.leader.answer(both.fetcher, both.fetch())
    both.leading[T0].lead(0, b"a")
    assert list(both.fetch().requested) == [T0, T1, T2]
    both.leader.answer(both.fetcher, both.fetch())
    assert list(both.fetch().requested) == [T1, T2, T0]


def test_the_lag_is_what_is_missing_below_the_leaders_high_watermark(cluster: MakeCluster) -> None:
    both = cluster(2, settings=FetcherSettings(FOLLOWER, fetch_max_bytes=1))
    both.leading[T0].lead(0, *(b"%d" % n for n in range(5)))
    both.leading[T0].commit(4)
    both.followers.follow(0)
    assert (both.fetcher.lags(), both.fetcher.max_lag) == ({}, 0)
    both.leader.answer(both.fetcher, both.fetch())
    assert both.fetcher.lags() == {T0: 3, T1: 0}
    assert both.fetcher.max_lag == 3
    both.followers.catch_up(both.leader)
    assert both.fetcher.lags() == {T0: 0, T1: 0}
    both.fetcher.remove_partitions([T0])
    assert both.fetcher.lags() == {T1: 0}


def test_requests_and_bytes_are_counted(cluster: MakeCluster) -> None:
    both = cluster()
    both.leading[T0].lead(0, b"a", b"b")
    both.followers.follow(0)
    both.leader.answer(both.fetcher, both.fetch())
    both.leader.answer(both.fetcher, both.fetch())
    assert both.fetcher.requests_count == 2
    assert both.fetcher.bytes_count == len(both.leading[T0].raw)


def test_nothing_to_follow_is_nothing_to_ask(cluster: MakeCluster) -> None:
    assert cluster().fetcher.next_request(0) == WaitPlan(None)


def test_records_of_a_later_epoch_are_left_and_the_rest_is_taken(cluster: MakeCluster) -> None:
    """KAFKA-18723: the leader moved on while the fetch was under way."""
    both = cluster()
    both.leading[T0].lead(0, b"a")
    both.leading[T0].lead(1, b"b")
    both.followers.follow(0)
    both.leader.answer(both.fetcher, both.fetch())
    assert both.following[T0].values == [b"a"]
    assert both.state().fetch_offset == 1


# -- what an answer counts for ----------------------------------------------------------------


def remove_and_add_elsewhere(both: Cluster) -> None:
    both.fetcher.remove_partitions([T0])
    both.leading[T0].replicate_to(both.following[T0], upto=1)
    both.followers.follow(0)


def begin_another_epoch(both: Cluster) -> None:
    both.followers.follow(1)


def recreate_the_topic(both: Cluster) -> None:
    both.fetcher.remove_partitions([T0])
    both.fetcher.add_partitions({T0: InitialFetchState(b"another topic id", LEADER, 0, 0)})


def remove(both: Cluster) -> None:
    both.fetcher.remove_partitions([T0])


def delay(both: Cluster) -> None:
    both.fetcher.request_failed(0)


@pytest.mark.parametrize(
    "meanwhile",
    [remove_and_add_elsewhere, begin_another_epoch, recreate_the_topic, remove, delay],
)
def test_an_answer_counts_only_for_the_state_of_its_request(
    cluster: MakeCluster, meanwhile: Callable[[Cluster], None]
) -> None:
    """Article 004: only if its offset is still the fetch offset, and the partition is ready."""
    both = cluster()
    both.leading[T0].lead(0, b"a", b"b")
    both.followers.follow(0)
    plan = both.fetch()
    answer = both.leader.fetch(plan)
    meanwhile(both)
    before = both.following[T0].log.log_end_offset
    state = both.fetcher.fetch_state(T0)
    both.fetcher.fetch_answered(plan, answer, 0)
    assert both.following[T0].log.log_end_offset == before
    assert both.fetcher.fetch_state(T0) == state
    assert both.fetcher.failed == set()


def test_partitions_may_leave_between_the_steps_of_an_answer(cluster: MakeCluster) -> None:
    both = cluster(2)
    for each in (T0, T1):
        both.leading[each].lead(0, b"a")
    both.followers.follow(0)
    plan = both.fetch()
    steps = both.fetcher.take_fetched(plan, both.leader.fetch(plan), 0)
    assert next(steps) == len(both.leading[T0].raw)
    both.fetcher.remove_partitions([T1])
    assert list(steps) == []
    assert both.following[T1].values == []
    assert both.followers.appended == [[T0]]


def test_the_same_epoch_again_goes_on_where_it_is(cluster: MakeCluster) -> None:
    both = cluster()
    both.leading[T0].lead(0, b"a")
    both.followers.follow(0)
    both.followers.catch_up(both.leader)
    state = both.state()
    both.fetcher.add_partitions({T0: InitialFetchState(TOPIC_ID, LEADER, 0, 0)})
    assert both.state() == state


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (ErrorCode.UNKNOWN_LEADER_EPOCH, logging.DEBUG),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, logging.DEBUG),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, logging.DEBUG),
        (ErrorCode.UNKNOWN_TOPIC_ID, logging.DEBUG),
        (ErrorCode.INCONSISTENT_TOPIC_ID, logging.WARNING),
        (ErrorCode.KAFKA_STORAGE_ERROR, logging.ERROR),
        (ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, logging.ERROR),
        (ErrorCode.UNKNOWN_SERVER_ERROR, logging.ERROR),
    ],
)
def test_a_partition_that_is_refused_is_tried_again_after_a_pause(
    cluster: MakeCluster, caplog: pytest.LogCaptureFixture, error: ErrorCode, level: int
) -> None:
    """Article 004, handlePartitionsWithErrors: it goes to the end, and waits."""
    both = cluster(2)
    both.leading[T1].lead(0, b"a")
    both.followers.follow(0)
    both.leader.errors[T0] = error
    with caplog.at_level(logging.DEBUG, "odradek"):
        both.leader.answer(both.fetcher, both.fetch(now_ms=5), now_ms=5)
    assert both.fetcher.topic_partitions == [T0, T1]  # both went to the end
    assert error.name in caplog.text
    assert [each.levelno for each in caplog.records if error.name in each.message] == [level]
    assert both.following[T1].values == [b"a"]
    pause_ms = FIRST_BACKOFF_MS if error in PASSING_ERRORS else BACKOFF_MS
    assert list(both.fetch(now_ms=4 + pause_ms).requested) == [T1]
    assert set(both.fetch(now_ms=5 + pause_ms).requested) == {T0, T1}


def test_an_error_that_should_pass_by_itself_and_lasts_is_one_warning(
    cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka's fetcher says of UNKNOWN_TOPIC_OR_PARTITION that it is not expected to persist."""
    both = cluster(1)
    both.leading[T0].lead(0, b"a")
    both.followers.follow(0)
    both.leader.errors[T0] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    now_ms = 0
    with caplog.at_level(logging.WARNING, "odradek"):
        for attempt in range(3 * ATTEMPTS_UNUSUAL):
            assert len(caplog.records) == (attempt > ATTEMPTS_UNUSUAL)
            both.leader.answer(both.fetcher, both.fetch(now_ms=now_ms), now_ms=now_ms)
            now_ms += 60_000
    (record,) = caplog.records
    assert "UNKNOWN_TOPIC_OR_PARTITION" in record.getMessage()


def test_a_leader_that_has_not_heard_of_it_is_queried_again_soon_and_then_later(
    cluster: MakeCluster,
) -> None:
    """It is told as the follower was; what lasts longer is no news on its way."""
    both = cluster()
    both.leading[T0].lead(0, b"a")
    both.followers.follow(1)  # the leader is in epoch 0 still
    now_ms, pauses = 0, []
    for _ in range(6):
        both.leader.answer(both.fetcher, both.fetch(now_ms), now_ms)
        both.leader.answer(both.fetcher, both.fetch(now_ms), now_ms)  # it leaves the session
        waiting = both.fetcher.next_request(now_ms)
        assert isinstance(waiting, WaitPlan)
        assert waiting.until_ms is not None
        pauses.append(waiting.until_ms - now_ms)
        now_ms = waiting.until_ms
    assert pauses == [50, 100, 200, 400, 800, 1000]
    both.leader.epoch = 1
    both.leader.answer(both.fetcher, both.fetch(now_ms), now_ms)
    assert both.following[T0].values == [b"a"]
    both.leader.errors[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    both.leader.answer(both.fetcher, both.fetch(now_ms), now_ms)
    both.leader.answer(both.fetcher, both.fetch(now_ms), now_ms)
    assert both.fetcher.next_request(now_ms) == WaitPlan(now_ms + 50)


def test_a_fenced_partition_fails_and_comes_back_with_the_next_epoch(cluster: MakeCluster) -> None:
    """Article 004, onPartitionFenced: it leaves the fetcher until its new epoch is told."""
    both = cluster()
    both.followers.follow(0)
    both.leader.epoch = 1
    both.leader.answer(both.fetcher, both.fetch())
    assert both.fetcher.failed == {T0}
    assert both.fetcher.partition_count == 0
    both.leading[T0].lead(1, b"a")
    both.followers.follow(1)
    assert both.fetcher.failed == set()
    both.followers.catch_up(both.leader)
    assert both.following[T0].values == [b"a"]


def test_records_that_are_damaged_are_fetched_again(cluster: MakeCluster) -> None:
    """Article 004: they may have been cut or half written when the leader read them."""
    both = cluster()
    both.leading[T0].lead(0, b"a")
    both.followers.follow(0)
    plan = both.fetch()
    answer = both.leader.fetch(plan)
    raw = bytearray(answer.partitions[T0].records)
    raw[-1] ^= 1
    damaged = answer.partitions[T0]._replace(records=memoryview(raw))
    both.fetcher.fetch_answered(plan, answer._replace(partitions={T0: damaged}), 0)
    assert both.following[T0].values == []
    assert both.fetcher.failed == set()
    assert both.state().is_delayed(BACKOFF_MS - 1)
    both.followers.catch_up(both.leader, now_ms=BACKOFF_MS)
    assert both.following[T0].values == [b"a"]


def test_records_that_do_not_follow_the_log_fail_their_partition_alone(
    cluster: MakeCluster,
) -> None:
    both = cluster(2)
    for each in (T0, T1):
        both.leading[each].lead(0, b"a")
    both.followers.follow(0)
    plan = both.fetch()
    answer = both.leader.fetch(plan)
    both.leading[T0].replicate_to(both.following[T0])  # behind the fetcher's back
    both.fetcher.fetch_answered(plan, answer, 0)
    assert both.fetcher.failed == {T0}
    assert both.fetcher.topic_partitions == [T1]
    assert both.following[T1].values == [b"a"]


def test_a_disk_that_fails_fails_its_partition(
    cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Article 004: on a storage error the partition leaves the fetcher."""
    both = cluster()
    both.leading[T0].lead(0, b"a")
    both.followers.follow(0)
    plan = both.fetch()
    answer = both.leader.fetch(plan)

    def refuse(descriptor: int, buffers: list[bytes]) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patches:
        patches.setattr("os.writev", refuse)
        both.fetcher.fetch_answered(plan, answer, 0)
    assert both.fetcher.failed == {T0}
    assert both.following[T0].log.log_end_offset == 0


def test_a_disk_that_is_full_is_tried_again(
    cluster: MakeCluster, full_disk: Callable[[bool], None]
) -> None:
    both = cluster()
    both.leading[T0].lead(0, b"a")
    both.followers.follow(0)
    plan = both.fetch()
    answer = both.leader.fetch(plan)
    full_disk(True)
    both.fetcher.fetch_answered(plan, answer, 0)
    full_disk(False)
    assert both.fetcher.failed == set()
    assert both.fetcher.next_request(0) != plan
    both.followers.catch_up(both.leader, now_ms=BACKOFF_MS)
    assert both.following[T0].raw == both.leading[T0].raw


def test_a_full_disk_tells_the_partitions_host_and_fills_no_log(
    cluster: MakeCluster,
    full_disk: Callable[[bool], None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line for each try of each partition would be what fills the next disk."""
    both = cluster()
    both.leading[T0].lead(0, b"a")
    both.followers.follow(0)
    told: list[ErrorCode] = []
    monkeypatch.setattr(
        both.following[T0].partition.host, "write_refused", lambda _, why: told.append(why.code)
    )
    full_disk(True)
    for now_ms in range(0, 5 * BACKOFF_MS, BACKOFF_MS):
        plan = both.fetch(now_ms=now_ms)
        both.fetcher.fetch_answered(plan, both.leader.fetch(plan), now_ms)
    full_disk(False)
    assert told == [ErrorCode.KAFKA_STORAGE_ERROR] * 5
    assert [each for each in caplog.messages if "append" in each] == []


def test_a_log_that_cannot_be_cut_fails_its_partition(
    cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Article 004, doTruncate."""
    both = cluster(settings=FetcherSettings(FOLLOWER, truncation=Truncation.HIGH_WATERMARK))
    both.following[T0].lead(0, b"a", b"b")
    both.followers.follow(0)

    def refuse(descriptor: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("os.ftruncate", refuse)
    assert both.fetcher.next_request(0) == WaitPlan(None)
    assert both.fetcher.failed == {T0}


def test_records_without_a_whole_batch_are_not_requested_all_the_time(cluster: MakeCluster) -> None:
    both = cluster()
    both.followers.follow(0)
    plan = both.fetch()
    cut = FetchedPartition(ErrorCode.NONE, 5, 0, b"0123456789")
    both.fetcher.fetch_answered(plan, FetchAnswer(ErrorCode.NONE, 1, {T0: cut}), 0)
    assert both.fetcher.next_request(0) != WaitPlan(None)
    assert both.state().is_delayed(BACKOFF_MS - 1)


def test_a_partition_that_is_gone_from_the_broker_waits(cluster: MakeCluster) -> None:
    """Article 004, buildFetch: what cannot be built is an error of that partition."""
    both = cluster(2)
    both.followers.follow(0)
    del both.followers.replicas[T0]
    assert list(both.fetch().requested) == [T1]
    assert both.state(T0).is_delayed(BACKOFF_MS - 1)


def test_after_a_lost_connection_everything_waits_and_is_named_anew(cluster: MakeCluster) -> None:
    both = cluster(2)
    both.followers.follow(0)
    both.leader.answer(both.fetcher, both.fetch())
    assert both.fetch().session_epoch == 1
    both.fetcher.request_failed(10)
    assert both.fetcher.next_request(10) == WaitPlan(10 + FIRST_BACKOFF_MS)
    plan = both.fetch(now_ms=10 + FIRST_BACKOFF_MS)
    assert plan.session_epoch == 0
    assert set(plan.to_send) == {T0, T1}


def test_pauses_between_connections_grow_until_one_is_answered(cluster: MakeCluster) -> None:
    both = cluster()
    both.followers.follow(0)
    now_ms, pauses = 0, []
    for _ in range(7):
        both.fetch(now_ms)
        both.fetcher.request_failed(now_ms)
        waiting = both.fetcher.next_request(now_ms)
        assert isinstance(waiting, WaitPlan)
        assert waiting.until_ms is not None
        pauses.append(waiting.until_ms - now_ms)
        now_ms = waiting.until_ms
    assert pauses == [50, 100, 200, 400, 800, 1000, 1000]
    both.leader.answer(both.fetcher, both.fetch(now_ms), now_ms)
    both.fetch(now_ms)
    both.fetcher.request_failed(now_ms)
    assert both.fetcher.next_request(now_ms) == WaitPlan(now_ms + 50)


def test_a_forgotten_session_is_opened_again_at_once(cluster: MakeCluster) -> None:
    both = cluster()
    both.followers.follow(0)
    both.leader.answer(both.fetcher, both.fetch())
    both.leader.session_error = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    both.leader.answer(both.fetcher, both.fetch())
    assert (both.fetch().session_id, both.fetch().session_epoch) == (0, 0)
    # A leader that refuses a new one, too, is given some time.
    both.leader.answer(both.fetcher, both.fetch())
    assert both.fetcher.next_request(0) == WaitPlan(BACKOFF_MS)


@pytest.mark.parametrize(
    "error", [ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_any_other_refusal_of_a_whole_fetch_makes_it_wait(
    cluster: MakeCluster, error: ErrorCode
) -> None:
    both = cluster()
    both.followers.follow(0)
    both.leader.answer(both.fetcher, both.fetch())
    both.leader.session_error = error
    both.leader.answer(both.fetcher, both.fetch())
    assert both.fetcher.next_request(0) == WaitPlan(BACKOFF_MS)
    assert both.fetch(now_ms=BACKOFF_MS).session_epoch == 0


# -- offsets out of range ---------------------------------------------------------------------


def test_a_leader_that_ends_before_gets_its_follower_cut(
    cluster: MakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Article 004, OFFSET_OUT_OF_RANGE: after an unclean election."""
    both = cluster(settings=FetcherSettings(FOLLOWER, truncation=Truncation.HIGH_WATERMARK))
    both.leading[T0].lead(0, b"a")
    both.following[T0].lead(0, b"a", b"b", b"c")
    both.following[T0].commit(3)
    both.followers.follow(0)
    requested: list[object] = both.followers.catch_up(both.leader)
    kinds = [plan.timestamp if isinstance(plan, OffsetsPlan) else "fetch" for plan in requested]
    assert kinds[:2] == ["fetch", LATEST_TIMESTAMP]
    assert both.following[T0].values == [b"a"]
    assert (both.state().fetch_offset, both.state().lag) == (1, 0)
    assert "goes back from 3 to its leader's end offset 1" in caplog.text


def test_a_follower_that_was_away_for_too_long_begins_anew(cluster: MakeCluster) -> None:
    """Article 004, OFFSET_OUT_OF_RANGE: the leader has deleted what would come next."""
    both = cluster()
    leading, following = both.leading[T0], both.following[T0]
    leading.lead(0, *(b"%d" % n for n in range(8)))
    leading.replicate_to(following, upto=2)
    leading.commit(8)
    leading.log.advance_log_start_offset(5)
    both.followers.follow(0)
    kinds = [
        plan.timestamp if isinstance(plan, OffsetsPlan) else "fetch"
        for plan in both.followers.catch_up(both.leader)
    ]
    assert kinds[:4] == ["fetch", LATEST_TIMESTAMP, EARLIEST_TIMESTAMP, "fetch"]
    assert following.log.log_start_offset == 5
    assert following.values == [b"5", b"6", b"7"]
    assert both.fetcher.lags() == {T0: 0}


def test_a_leader_that_has_grown_meanwhile_is_fetched_from_as_before(cluster: MakeCluster) -> None:
    both = cluster()
    leading, following = both.leading[T0], both.following[T0]
    leading.lead(0, b"a", b"b", b"c")
    leading.replicate_to(following, upto=2)
    both.followers.follow(0)
    both.refuse(ErrorCode.OFFSET_OUT_OF_RANGE)
    both.followers.catch_up(both.leader)
    assert following.raw == leading.raw


def test_where_nothing_is_known_the_leaders_offsets_say_where_to_begin(
    cluster: MakeCluster,
) -> None:
    both = cluster()
    both.leading[T0].lead(0, *(b"%d" % n for n in range(4)))
    both.leading[T0].commit(4)
    both.leading[T0].log.advance_log_start_offset(3)
    both.fetcher.add_partitions({T0: InitialFetchState(TOPIC_ID, LEADER, 0, -1)})
    both.followers.catch_up(both.leader)
    assert both.following[T0].values == [b"3"]
    assert both.following[T0].log.log_start_offset == 3


def test_the_leaders_offsets_fail_or_wait_as_a_fetch_does(cluster: MakeCluster) -> None:
    both = cluster()
    both.followers.follow(0)
    both.refuse(ErrorCode.OFFSET_OUT_OF_RANGE)
    plan = both.followers.plan()
    assert plan == OffsetsPlan(LATEST_TIMESTAMP, {T0: 0})
    assert isinstance(plan, OffsetsPlan)
    for answered in ({}, {T0: ListedOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER)}):
        both.fetcher.offsets_answered(plan, answered, 0)
        assert both.fetcher.next_request(0) != plan
        assert both.fetcher.next_request(BACKOFF_MS) == plan
    both.fetcher.offsets_answered(plan, {T0: ListedOffset(ErrorCode.FENCED_LEADER_EPOCH)}, 0)
    assert both.fetcher.failed == {T0}


def test_the_leaders_offsets_count_only_for_the_state_of_their_request(
    cluster: MakeCluster,
) -> None:
    both = cluster()
    both.following[T0].lead(0, b"a", b"b")
    both.followers.follow(0)
    both.refuse(ErrorCode.OFFSET_OUT_OF_RANGE)
    plan = both.followers.plan()
    assert isinstance(plan, OffsetsPlan)
    both.followers.follow(1)
    state = both.state()
    both.fetcher.offsets_answered(plan, {T0: ListedOffset(ErrorCode.NONE, 0)}, 0)
    assert both.state() == state
    assert both.following[T0].values == [b"a", b"b"]


# -- quotas -----------------------------------------------------------------------------------


class Quota:
    """Some partitions are throttled; whether they may be fetched is said from outside."""

    def __init__(self, *throttled: TopicPartition) -> None:
        self.throttled = throttled
        self.exceeded = False
        self.recorded = 0

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self.throttled

    def is_quota_exceeded(self) -> bool:
        return self.exceeded

    def record(self, size: int) -> None:
        self.recorded += size


def test_throttled_partitions_that_are_out_of_sync_wait(cluster: MakeCluster) -> None:
    """Article 004, buildFetch: the quota holds back who is behind, and nobody else."""
    quota = Quota(T0, T1)
    both = cluster(3, quota=quota)
    both.followers.follow(0)
    for each in (T0, T1, T2):
        both.leading[each].lead(0, b"a")
        both.leading[each].commit(1)
    del both.leader.replicas[T1]  # stays behind
    both.leader.answer(both.fetcher, both.fetch())
    quota.exceeded = True
    assert set(both.fetch(BACKOFF_MS).requested) == {T0, T2}
    quota.exceeded = False
    assert set(both.fetch(BACKOFF_MS).requested) == {T0, T1, T2}


def test_bytes_of_throttled_partitions_are_recorded_in_sync_or_not(cluster: MakeCluster) -> None:
    """Article 004, processPartitionData."""
    quota = Quota(T0)
    both = cluster(2, quota=quota)
    both.followers.follow(0)
    for each in (T0, T1):
        both.leading[each].lead(0, b"a")
    both.leader.answer(both.fetcher, both.fetch())
    assert quota.recorded == len(both.leading[T0].raw)


def test_with_nothing_else_to_fetch_the_quota_is_looked_at_again_later(
    cluster: MakeCluster,
) -> None:
    quota = Quota(T0)
    quota.exceeded = True
    both = cluster(quota=quota)
    both.followers.follow(0)
    assert both.fetcher.next_request(7) == WaitPlan(7 + BACKOFF_MS)


# -- states -----------------------------------------------------------------------------------


def test_a_state_that_an_event_cannot_meet_raises() -> None:
    for state in ReplicaState:
        for event in FetchEvent:
            if not TRANSITIONS.takes(state, event):
                with pytest.raises(IllegalTransitionError, match=f"{state.value} cannot take"):
                    TRANSITIONS.next_state(state, event)


def test_every_state_is_reached_and_left() -> None:
    rows = TRANSITIONS.transitions
    assert {row.target for row in rows} == set(ReplicaState) == {row.source for row in rows}
    assert all(row.reason for row in rows)

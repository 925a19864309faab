"""Which fetcher follows which partition."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scripted_leader import FOLLOWER, TOPIC_ID, Replica, ScriptedLeader, tp

from odradek.common.errors import ErrorCode
from odradek.replication.fetcher.fetch_state import InitialFetchState
from odradek.replication.fetcher.fetcher import ReplicaFetcher
from odradek.replication.fetcher.manager import FetcherKey, FetcherManager
from odradek.replication.fetcher.plans import FetchPlan
from odradek.replication.fetcher.settings import FetcherSettings
from odradek.replication.partition.partition import Partition
from odradek.storage import TopicPartition


class Driven:
    """A fetcher that the test drives by hand."""

    def __init__(self, fetcher: ReplicaFetcher) -> None:
        self.fetcher = fetcher
        self.key = FetcherKey(fetcher.leader_id, fetcher.fetcher_id)
        self.woken = 0
        self.is_closed = False

    def wake(self) -> None:
        self.woken += 1

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True

    def fetch(self) -> FetchPlan:
        plan = self.fetcher.next_request(0)
        assert isinstance(plan, FetchPlan)
        return plan


class Bench:
    """A manager over real logs."""

    def __init__(self, folder: Path, num_fetchers: int) -> None:
        self.folder = folder
        self.replicas: dict[TopicPartition, Replica] = {}
        self.started: list[Driven] = []
        self.manager = FetcherManager(
            FetcherSettings(FOLLOWER), num_fetchers, self.partition_of, self.start
        )

    def partition_of(self, topic_partition: TopicPartition) -> Partition:
        if topic_partition not in self.replicas:
            self.replicas[topic_partition] = Replica(self.folder / "follower", topic_partition)
        return self.replicas[topic_partition].partition

    def start(self, fetcher: ReplicaFetcher) -> Driven:
        self.started.append(Driven(fetcher))
        return self.started[-1]

    def follow(self, leader_id: int, *topic_partitions: TopicPartition, epoch: int = 0) -> None:
        begin = InitialFetchState(TOPIC_ID, leader_id, epoch, 0)
        self.manager.add_fetchers(dict.fromkeys(topic_partitions, begin))

    @property
    def running(self) -> dict[FetcherKey, Driven]:
        return {each.key: each for each in self.started if not each.is_closed}

    @property
    def spread(self) -> dict[FetcherKey, set[TopicPartition]]:
        """Who follows what."""
        return {
            key: set(each.fetcher.topic_partitions)
            for key, each in self.running.items()
            if each.fetcher.partition_count
        }


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, 2)


@pytest.mark.parametrize(
    ("topic", "partition", "fetchers", "expected"),
    # abs(31 * topic.hashCode() + partition) % n, as Java with Kafka's own Utils.abs says.
    [
        ("t", 0, 1000, 596),
        ("t", 1, 1000, 597),
        ("orders", 0, 1000, 189),
        ("__consumer_offsets", 49, 1000, 318),
        ("t", 2_147_480_052, 1000, 0),  # Java's least int, which has no absolute value
    ],
)
def test_a_partitions_fetcher_is_that_of_kafka(
    tmp_path: Path, topic: str, partition: int, fetchers: int, expected: int
) -> None:
    """Article 004, fields: fetcherId, of which num.replica.fetchers says how many there are."""
    manager = Bench(tmp_path, fetchers).manager
    assert manager.fetcher_id_of(TopicPartition(topic, partition)) == expected


def test_partitions_are_spread_over_fetchers_by_leader_and_hash(bench: Bench) -> None:
    bench.follow(1, tp(0), tp(1), tp(2))
    bench.follow(3, tp(3))
    assert bench.spread == {
        FetcherKey(1, 0): {tp(0), tp(2)},
        FetcherKey(1, 1): {tp(1)},
        FetcherKey(3, 1): {tp(3)},
    }


def test_a_running_fetcher_is_woken_for_more(bench: Bench) -> None:
    bench.follow(1, tp(0))
    (fetcher,) = bench.started
    assert fetcher.woken == 0
    bench.follow(1, tp(2))
    assert fetcher.woken == 1
    assert bench.started == [fetcher]


def test_idle_fetchers_are_shut_down_and_started_again(bench: Bench) -> None:
    bench.follow(1, tp(0), tp(1))
    removed = bench.manager.remove_fetchers([tp(0), tp(9)])
    assert list(removed) == [tp(0)]
    assert removed[tp(0)].fetch_offset == 0
    assert len(bench.running) == 2
    bench.manager.shutdown_idle_fetchers()
    assert set(bench.running) == {FetcherKey(1, 1)}
    bench.follow(1, tp(0))
    assert set(bench.running) == {FetcherKey(1, 0), FetcherKey(1, 1)}
    bench.manager.shutdown()
    assert bench.running == {}


def test_a_new_leader_is_followed_instead_of_the_old_one(bench: Bench) -> None:
    bench.follow(1, tp(0))
    bench.follow(3, tp(0), epoch=1)
    assert bench.spread == {FetcherKey(3, 0): {tp(0)}}


def test_another_number_of_fetchers_spreads_all_anew(bench: Bench) -> None:
    bench.follow(1, *(tp(index) for index in range(6)))
    bench.manager.resize(3)
    assert bench.spread == {
        FetcherKey(1, 0): {tp(1), tp(4)},
        FetcherKey(1, 1): {tp(2), tp(5)},
        FetcherKey(1, 2): {tp(0), tp(3)},
    }
    bench.manager.resize(1)
    assert bench.spread == {FetcherKey(1, 0): {tp(index) for index in range(6)}}
    assert set(bench.running) == {FetcherKey(1, 0)}
    assert len(bench.started) == 3


def test_a_moved_partition_goes_on_where_it_was(bench: Bench, tmp_path: Path) -> None:
    leading = Replica(tmp_path / "leader", tp(0))
    leading.lead(0, b"a")
    leader = ScriptedLeader({tp(0): leading}, 0)
    bench.follow(1, tp(0))
    before = bench.running[FetcherKey(1, 0)]
    leader.answer(before.fetcher, before.fetch())
    under_way = before.fetch()
    leading.lead(0, b"b")
    late = leader.fetch(under_way)
    bench.manager.resize(3)
    after = bench.running[FetcherKey(1, 2)]
    plan = after.fetch()
    assert plan.requested[tp(0)].fetch_offset == 1
    leader.answer(after.fetcher, plan)
    before.fetcher.fetch_answered(under_way, late, 0)  # comes too late
    assert bench.replicas[tp(0)].values == [b"a", b"b"]


def test_failed_partitions_are_counted_until_they_are_followed_again_or_not(
    bench: Bench,
) -> None:
    """Article 004: a failed partition leaves its fetcher and is counted."""
    bench.follow(1, tp(0), tp(1), tp(2))
    leader = ScriptedLeader({}, 0)
    leader.errors = dict.fromkeys((tp(0), tp(1)), ErrorCode.FENCED_LEADER_EPOCH)
    for each in bench.started:
        leader.answer(each.fetcher, each.fetch())
    assert bench.manager.failed_partitions == {tp(0), tp(1)}
    assert bench.manager.failed_partitions_count == 2
    assert not any(tp(0) in fetcher.topic_partitions for fetcher in bench.manager)
    assert tp(2) in bench.started[0].fetcher.topic_partitions
    bench.follow(1, tp(0), epoch=1)
    assert bench.manager.failed_partitions == {tp(1)}
    bench.manager.remove_fetchers([tp(1)])
    assert bench.manager.failed_partitions_count == 0
    assert bench.manager.dead_threads_count == 0


def test_the_largest_lag_is_that_of_all_fetchers(bench: Bench, tmp_path: Path) -> None:
    leading = {each: Replica(tmp_path / "leader", each) for each in (tp(0), tp(1))}
    bench.follow(1, *leading)
    assert bench.manager.max_lag() == 0
    for count, replica in enumerate(leading.values(), start=2):
        replica.lead(0, *(b"value" for _ in range(count)))
        replica.commit(count)
    leader = ScriptedLeader(leading, 0)
    for each in bench.started:
        plan = each.fetch()
        answer = leader.fetch(plan)
        cut = {
            each: data._replace(records=memoryview(data.records)[: len(data.records) // 2 + 1])
            for each, data in answer.partitions.items()
        }
        each.fetcher.fetch_answered(plan, answer._replace(partitions=cut), 0)
    assert bench.manager.max_lag() == max(bench.manager.lags().values()) == 2
    assert bench.manager.lags()[tp(0)] == 1

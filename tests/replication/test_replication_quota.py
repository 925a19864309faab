"""Throttled replication (KIP-73): bytes a second, for the replicas that topics name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.common.topic_partition import TopicPartition
from odradek.replication.partition.partition import FetchIsolation
from odradek.replication.quota.replication_quota import LEADER_REPLICAS, ReplicationQuota
from odradek.replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from odradek.runtime.clock import ManualClock

if TYPE_CHECKING:
    from .conftest import Bench

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
BROKER_ID = 1


class Quota:
    def __init__(self) -> None:
        self.clock = ManualClock(0)
        self.quota = ReplicationQuota(LEADER_REPLICAS, BROKER_ID, self.clock.monotonic_ms, 11, 1000)


@pytest.mark.parametrize(
    ("text", "throttled"),
    [
        ("", []),
        ("*", [T0, T1]),
        ("0:1", [T0]),
        ("0:2,1:1", [T1]),
        (" 0:1 , 1:1 ", [T0, T1]),
        ("0:2", []),
    ],
)
def test_a_topic_names_the_replicas_that_are_throttled(
    text: str, throttled: list[TopicPartition]
) -> None:
    quota = Quota().quota
    quota.configure_topic("t", {LEADER_REPLICAS: text})
    assert [tp for tp in (T0, T1) if quota.is_throttled(tp)] == throttled
    quota.configure_topic("t", {})
    assert not quota.is_throttled(T0)


def test_without_a_bound_nothing_exceeds_it() -> None:
    bench = Quota()
    bench.quota.record(10**12)
    assert not bench.quota.is_quota_exceeded()


def test_the_rate_is_that_of_the_windows_kept() -> None:
    bench = Quota()
    bench.quota.bytes_per_second_max = 1000
    bench.quota.record(1000)
    assert bench.quota.bytes_per_second == 1000
    assert not bench.quota.is_quota_exceeded()
    bench.quota.record(1)
    assert bench.quota.is_quota_exceeded()
    bench.clock.advance(2000)
    bench.quota.record(2000)
    assert bench.quota.bytes_per_second == pytest.approx(3001 / 2)
    bench.clock.advance(8999)  # the first window is in its eleventh second
    assert bench.quota.bytes_per_second == pytest.approx(3001 / 10.999)
    bench.clock.advance(1)
    assert bench.quota.bytes_per_second == pytest.approx(2000 / 9)
    bench.clock.advance(2000)
    assert bench.quota.bytes_per_second == 0


class Leader:
    """Broker 1 leads; broker 2 is in sync, broker 3 is not, and is throttled."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.manager = bench.manager
        config = {LEADER_REPLICAS: "0:1"}
        bench.lead(bench.state(leader_epoch=1, isr=(1, 2), replicas=(1, 2, 3), config=config))
        for _ in range(50):
            bench.produce("t", b"v" * 1000)
        self.manager.quotas.leader.bytes_per_second_max = 10_000

    def fetch(
        self, broker_id: int, offset: int = 0, *, wait_ms: int = 0
    ) -> list[FetchPartitionData]:
        answers: list[FetchPartitionData] = []
        params = FetchParams(wait_ms, 1, 1 << 20, FetchIsolation.LOG_END, broker_id)

        def answered(results: FetchResults) -> None:
            self.manager.count_fetches(params, results)
            answers.append(results[0][1])

        requested = FetchPartition(T0, bytes(16), offset, 20_000, log_start_offset=0)
        self.bench.manager.fetch_messages(params, [requested], answered)
        return answers


def test_a_follower_out_of_sync_gets_nothing_above_the_bound(bench: Bench) -> None:
    leader = Leader(bench)
    (first,) = leader.fetch(3)
    assert len(first.records) > 10_000
    (second,) = leader.fetch(3)
    assert len(second.records) == 0
    assert second.high_watermark == 0
    (in_sync,) = leader.fetch(2)
    assert len(in_sync.records) > 0
    bench.advance(12_000)
    (later,) = leader.fetch(3)
    assert len(later.records) > 0


def test_a_throttled_fetch_waits_and_gives_nothing(bench: Bench) -> None:
    leader = Leader(bench)
    leader.fetch(3)
    waiting = leader.fetch(3, wait_ms=500)
    bench.produce("t", b"more")
    assert waiting == []
    bench.advance(500)
    assert [len(data.records) for data in waiting] == [0]

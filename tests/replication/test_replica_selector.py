"""Consumers are sent to a replica in their own rack (KIP-392)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.replication.partition.partition import FetchIsolation, Partition
from odradek.replication.read.fetch import (
    FetchParams,
    FetchPartition,
    FetchPartitionData,
    FetchResults,
)
from odradek.replication.read.replica_selector import NO_REPLICA, RackAwareSelector

if TYPE_CHECKING:
    from .conftest import Bench

T0 = TopicPartition("t", 0)
RACKS = {1: "a", 2: "b", 3: "b", 4: "c"}


class Racks:
    """Broker 1 leads; 2 and 3 are in one rack, 4, which is out of sync, in another."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.racks = dict(RACKS)
        bench.manager.partitions.select_replica = RackAwareSelector(self.racks.get)
        bench.lead(bench.state(leader_epoch=1, isr=(1, 2, 3), replicas=(1, 2, 3, 4)))
        for _ in range(4):
            bench.produce("t", b"value")
        for broker_id, offset in ((2, 3), (3, 4), (4, 1)):
            self.fetch("", 0, broker_id, offset)

    @property
    def partition(self) -> Partition:
        found = self.bench.manager.get_partition(T0)
        assert found is not None
        return found

    def fetch(
        self, rack: str, wait_ms: int = 0, replica_id: int = -1, offset: int = 2
    ) -> FetchPartitionData:
        answers: list[FetchResults] = []
        isolation = FetchIsolation.HIGH_WATERMARK if replica_id < 0 else FetchIsolation.LOG_END
        params = FetchParams(wait_ms, 1, 1 << 20, isolation, replica_id, rack, replica_id < 0)
        requested = FetchPartition(T0, bytes(16), offset, 1 << 20, log_start_offset=0)
        self.bench.manager.fetch_messages(params, [requested], answers.append)
        ((_, data),) = answers[0]
        return data


@pytest.fixture
def racks(bench: Bench) -> Racks:
    return Racks(bench)


def test_the_furthest_replica_of_the_rack_is_named_and_nothing_is_read(racks: Racks) -> None:
    data = racks.fetch("b", wait_ms=1000)
    assert (data.preferred_read_replica, len(data.records)) == (3, 0)
    assert data.error is ErrorCode.NONE
    assert data.high_watermark == racks.partition.high_watermark


@pytest.mark.parametrize("rack", ["a", "", "elsewhere"])
def test_others_read_from_the_leader(racks: Racks, rack: str) -> None:
    data = racks.fetch(rack)
    assert data.preferred_read_replica == NO_REPLICA
    assert len(data.records) > 0


def test_one_out_of_sync_is_nobodys_choice(racks: Racks) -> None:
    assert racks.fetch("c", offset=1).preferred_read_replica == NO_REPLICA


def test_one_that_has_not_the_offset_is_not_chosen(racks: Racks) -> None:
    racks.partition.remote_replicas[3].log_start_offset = 3
    assert racks.fetch("b", offset=2).preferred_read_replica == 2


def test_one_whose_broker_is_away_is_not_chosen(racks: Racks) -> None:
    del racks.racks[3]
    assert racks.fetch("b").preferred_read_replica == 2


def test_a_follower_answers_consumers_as_far_as_it_knows_what_is_committed(bench: Bench) -> None:
    bench.lead(bench.state(leader_epoch=1, isr=(1, 2), replicas=(1, 2)))
    bench.produce("t", b"committed", b"not yet")
    partition = bench.manager.get_partition(T0)
    assert partition is not None
    state = bench.state(leader=2, leader_epoch=2, partition_epoch=1, isr=(2,), replicas=(1, 2))
    bench.lead(state)
    partition.update_follower_high_watermark(1)
    requested = FetchPartition(T0, bytes(16), 0, 1 << 20)
    for may_ask_followers, error in (
        (True, ErrorCode.NONE),
        (False, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        answers: list[FetchResults] = []
        params = FetchParams(
            0,
            1,
            1 << 20,
            FetchIsolation.HIGH_WATERMARK,
            may_ask_followers=may_ask_followers,
        )
        bench.manager.fetch_messages(params, [requested], answers.append)
        assert answers[0][0][1].error is error
    assert answers[0][0][1].high_watermark == -1

"""An unclean election loses records; whoever has them still cuts just those when it returns, and
a consumer that has read them hears of it.

Brokers 1 and 2 hold the partition, broker 3 only keeps the cluster going. Both have the first
records; then each leads alone while the other is gone.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import trio
from support.load_history import History, token_of
from support.load_senders import DELIVERY_SECONDS_MAX, send_once
from support.replica_files import read_replica, values_of
from support.replicated_cluster import TOPIC, ReplicatedCluster

from odradek.client import Consumer, ConsumerSettings, KafkaClient, LogTruncationError

OLD, NEW = 1, 2
COMMON = 40
NOBODY_LAGS = {"replica.lag.time.max.ms": "60000"}
"""Whoever runs has the common records, also where the machine was busy."""
READ_SECONDS_MAX = 120
UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}


class Divided:
    """A cluster whose two replicas never lead at the same time."""

    def __init__(self, cluster: ReplicatedCluster) -> None:
        self.cluster = cluster
        self.history = History()

    def begin(self) -> None:
        self.cluster.create_topic((OLD, NEW), configs=UNCLEAN)
        self.send(OLD, COMMON)
        self.cluster.brokers[NEW].kill()

    def send(self, leader: int, count: int) -> int:
        """Send records to who leads; returns the end of its log."""
        port = self.cluster.ports[leader]
        return send_once(port, TOPIC, "all", count, self.history, DELIVERY_SECONDS_MAX)

    def let_lead_alone(self, leader: int, other: int) -> None:
        """The other goes, and then this one comes, without what the other got last."""
        self.cluster.brokers[other].kill()
        self.cluster.brokers[leader].start()
        self.cluster.agreed(lambda view: view.topics[TOPIC][0].leader == leader)

    def bring_back(self, broker_id: int) -> str:
        """Start a broker and wait until it is in sync; returns what it logged meanwhile."""
        known = len(self.cluster.brokers[broker_id].log)
        self.cluster.brokers[broker_id].start()
        self.cluster.wait_in_sync()
        return self.cluster.brokers[broker_id].log[known:]

    def numbers(self, end_offset: int) -> list[int]:
        """Each record's sender, in order, of replicas that are the same."""
        self.cluster.kill_all()
        replicas = [
            read_replica(each, self.cluster.folder / f"broker-{each}", TOPIC, 0)
            for each in (OLD, NEW)
        ]
        assert replicas[0].batches == replicas[1].batches
        tokens = [token_of(value) for _, value in values_of(replicas[0].batches, end_offset)]
        assert len(tokens) == end_offset
        return [int(token.sender.split(" ")[1]) for token in tokens]


@pytest.mark.parametrize(
    ("lost", "gained"), [(50, 20), (20, 50), (30, 30), (30, 0)], ids=lambda count: str(count)
)
def test_a_returned_leader_is_cut_where_the_unclean_election_was(
    tmp_path: Path, lost: int, gained: int
) -> None:
    with ReplicatedCluster(tmp_path, settings=NOBODY_LAGS) as cluster:
        divided = Divided(cluster)
        divided.begin()
        assert divided.send(OLD, lost) == COMMON + lost
        divided.let_lead_alone(NEW, OLD)
        if gained:
            assert divided.send(NEW, gained) == COMMON + gained
        log = divided.bring_back(OLD)
        assert f"Truncating {TOPIC}-0 to offset {COMMON}\n" in log
        assert divided.send(NEW, 5) == COMMON + gained + 5
        cluster.wait_in_sync()
        senders = [1] * COMMON + [3] * gained + [4 if gained else 3] * 5
        assert divided.numbers(COMMON + gained + 5) == senders


def test_logs_that_diverged_in_several_epochs_are_cut_where_they_last_agreed(
    tmp_path: Path,
) -> None:
    """KIP-279: the epochs that the two have in common end before what either asks for first."""
    with ReplicatedCluster(tmp_path, settings=NOBODY_LAGS) as cluster:
        divided = Divided(cluster)
        divided.begin()
        assert divided.send(OLD, 20) == COMMON + 20
        divided.let_lead_alone(NEW, OLD)
        assert divided.send(NEW, 10) == COMMON + 10
        divided.let_lead_alone(OLD, NEW)
        assert divided.send(OLD, 5) == COMMON + 25
        divided.let_lead_alone(NEW, OLD)
        assert divided.send(NEW, 30) == COMMON + 40
        divided.let_lead_alone(OLD, NEW)
        assert divided.send(OLD, 7) == COMMON + 32
        log = divided.bring_back(NEW)
        assert f"Truncating {TOPIC}-0 to offset {COMMON}\n" in log
        assert divided.numbers(COMMON + 32) == [1] * COMMON + [2] * 20 + [4] * 5 + [6] * 7


LOST, GAINED = 30, 50


async def read_on(
    bootstrap: list[str], count: int, reset: str, group: str, *, commit: bool = False
) -> list[int]:
    """The offsets of so many records, from what the group has committed on."""
    settings = ConsumerSettings(auto_offset_reset=reset)
    offsets: list[int] = []
    with trio.fail_after(READ_SECONDS_MAX):
        async with (
            KafkaClient(bootstrap) as client,
            Consumer(client, group_id=group, settings=settings) as consumer,
        ):
            consumer.assign([(TOPIC, 0)])
            while len(offsets) < count:
                offsets += [record.offset for record in await consumer.poll()]
            if commit:
                await consumer.commit()
    return offsets


async def read_while_a_leader_is_lost(divided: Divided) -> list[int]:
    """The offsets that one consumer reads of what the two leaders have had."""
    offsets: list[int] = []
    async with (
        KafkaClient(divided.cluster.bootstrap) as client,
        Consumer(client, settings=ConsumerSettings(auto_offset_reset="earliest")) as consumer,
    ):
        consumer.assign([(TOPIC, 0)])
        with trio.fail_after(READ_SECONDS_MAX):
            while len(offsets) < COMMON + LOST:
                offsets += [record.offset for record in await consumer.poll()]
        async with trio.open_nursery() as nursery:

            async def lose_the_leader() -> None:
                await trio.to_thread.run_sync(divided.let_lead_alone, NEW, OLD)
                await trio.to_thread.run_sync(divided.send, NEW, GAINED)

            nursery.start_soon(lose_the_leader)
            with trio.fail_after(READ_SECONDS_MAX):
                while len(offsets) < COMMON + LOST + GAINED:
                    offsets += [record.offset for record in await consumer.poll()]
    return offsets


def test_a_consumer_goes_back_to_where_its_new_leader_differs(tmp_path: Path) -> None:
    """KIP-320: the offset that it would read next is there, but is of another record's history."""
    with ReplicatedCluster(tmp_path, settings=NOBODY_LAGS) as cluster:
        divided = Divided(cluster)
        divided.begin()
        assert divided.send(OLD, LOST) == COMMON + LOST
        for group in ("resets", "fails"):
            found = trio.run(
                partial(read_on, commit=True), cluster.bootstrap, COMMON + LOST, "earliest", group
            )
            assert found == list(range(COMMON + LOST))
        everything = [*range(COMMON + LOST), *range(COMMON, COMMON + GAINED)]
        assert trio.run(read_while_a_leader_is_lost, divided) == everything
        found = trio.run(read_on, cluster.bootstrap, GAINED, "latest", "resets")
        assert found == list(range(COMMON, COMMON + GAINED))
        with pytest.raises(LogTruncationError) as raised:
            trio.run(read_on, cluster.bootstrap, 1, "none", "fails")
        assert (raised.value.position, raised.value.end_offset) == (COMMON + LOST, COMMON)

"""Our own consumers where brokers are killed: nothing is lost, and nothing is owned twice."""

from __future__ import annotations

from collections.abc import Iterator, Set

import pytest
import trio

from odradek.client import (
    Admin,
    Consumer,
    ConsumerSettings,
    KafkaClient,
    Producer,
    RebalanceListener,
)
from odradek.client.admin.admin import NewTopic
from odradek.testing import Cluster

PARTITIONS = 6
EACH_TIME = 200
PATIENT_SECONDS = 100
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "min.insync.replicas": "2",
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS) as running:
        yield running


class Owners:
    """Who owns each partition, by what members are called with."""

    def __init__(self) -> None:
        self.owners: dict[tuple[str, int], str] = {}
        self.violations: list[str] = []

    def listener_of(self, name: str) -> RebalanceListener:
        return _Listener(self, name)


class _Listener(RebalanceListener):
    def __init__(self, all_owners: Owners, name: str) -> None:
        self._all = all_owners
        self._name = name

    async def on_assigned(self, partitions: Set[tuple[str, int]]) -> None:
        for each in partitions:
            other = self._all.owners.setdefault(each, self._name)
            if other != self._name:
                self._all.violations.append(f"{each} is {other}'s, and now {self._name}'s")

    async def on_revoked(self, partitions: Set[tuple[str, int]]) -> None:
        for each in partitions:
            del self._all.owners[each]

    on_lost = on_revoked


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
async def test_members_go_on_while_coordinator_and_leaders_are_killed(
    cluster: Cluster, protocol: str
) -> None:
    owners = Owners()
    sent: set[bytes] = set()
    handed_out: set[bytes] = set()
    news = trio.Event()
    settings = ConsumerSettings(
        group_protocol=protocol,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=100,
        heartbeat_interval_ms=200,
        partition_assignment_strategy=("cooperative-sticky",),
    )
    group = f"orders-{protocol}"

    async def consume(name: str, reading: trio.CancelScope) -> None:
        async with KafkaClient(cluster.bootstrap_servers) as client:
            consumer = Consumer(
                client,
                group_id=group,
                topics=["orders"],
                listener=owners.listener_of(name),
                settings=settings,
            )
            with reading:  # which is cancelled before the client is, so that the group is left
                async with consumer:
                    async for record in consumer:
                        assert record.value is not None
                        handed_out.add(record.value)
                        tell()

    async def produce() -> None:
        async with KafkaClient(cluster.bootstrap_servers) as client, Producer(client) as producer:
            while True:
                value = b"%d" % len(sent)
                await (await producer.send("orders", value, partition=len(sent) % PARTITIONS))
                sent.add(value)
                tell()

    def tell() -> None:
        nonlocal news
        news.set()
        news = trio.Event()

    async def more_are_handed_out() -> None:
        """Wait until everything that was sent up to now, and some more, has been handed out."""
        enough = len(sent) + EACH_TIME
        while len(sent) < enough:
            await news.wait()
        so_far = frozenset(sent)
        while not so_far <= handed_out:
            await news.wait()

    async with KafkaClient(cluster.bootstrap_servers) as client:
        await Admin(client).create_topics([NewTopic("orders", PARTITIONS, 3)])
        with trio.fail_after(PATIENT_SECONDS):
            async with trio.open_nursery() as producing:
                producing.start_soon(produce)
                async with trio.open_nursery() as consuming:
                    scopes = [trio.CancelScope() for _ in range(2)]
                    for number, scope in enumerate(scopes):
                        consuming.start_soon(consume, f"member {number}", scope)
                    await more_are_handed_out()
                    coordinator = await trio.to_thread.run_sync(cluster.coordinator_of, group)
                    await trio.to_thread.run_sync(coordinator.kill)
                    await more_are_handed_out()
                    await trio.to_thread.run_sync(coordinator.start)
                    await more_are_handed_out()
                    leader = await trio.to_thread.run_sync(cluster.leader_of, "orders", 0)
                    await trio.to_thread.run_sync(leader.kill)
                    await more_are_handed_out()
                    for scope in scopes:
                        scope.cancel()
                producing.cancel_scope.cancel()
        assert owners.violations == []
        assert owners.owners == {}
        # What was committed survives: a new member begins where the others stopped.
        later = Consumer(client, group_id=group, topics=["orders"], settings=settings)
        async with later:
            with trio.fail_after(PATIENT_SECONDS):
                rest = []
                while not later.assignment:
                    rest += await later.poll(timeout_ms=100)
                for each, end in (await later.end_offsets(later.assignment)).items():
                    while await later.position(each) < end:
                        rest += await later.poll(timeout_ms=100)
        assert len(rest) < EACH_TIME
        assert sent <= handed_out | {record.value for record in rest}

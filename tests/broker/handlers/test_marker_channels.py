"""Markers on their way to partitions: retries, fencing, partitions that are gone, dropped ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from odradek.common.errors import ErrorCode
from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.common.topic_partition import TopicPartition
from odradek.coordinator.transaction.marker_sender import MarkersToWrite
from odradek.metadata.metadata_cache import MetadataUpdate
from odradek.protocol.records import build_batch
from odradek.storage.log.append_origin import AppendOrigin
from odradek.storage.producer_state.verification_guard import NOT_REQUIRED

if TYPE_CHECKING:
    from conftest import Bench

NOW_MS = 1_700_000_000_000
PRODUCER = 7
COORDINATOR_PARTITION = 3
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def markers(*partitions: TopicPartition, epoch: int = 0, name: str = "tx") -> MarkersToWrite:
    return MarkersToWrite(
        name, COORDINATOR_PARTITION, 0, PRODUCER, epoch, False, frozenset(partitions), 0
    )


def write(bench: Bench, topic_partition: TopicPartition, epoch: int = 0) -> None:
    """A batch of the producer's transaction."""
    data = build_batch(
        [(b"k", b"v", NOW_MS, ())],
        producer_id=PRODUCER,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    manager = bench.broker.replica_manager
    manager.append_records(
        timeout_ms=1000,
        required_acks=1,
        internal_topics_allowed=False,
        origin=AppendOrigin.CLIENT,
        entries={topic_partition: memoryview(data)},
        on_complete=lambda results: None,
        guards={topic_partition: NOT_REQUIRED},
    )
    manager.flush()


class Outcome:
    """What a sender was told, and when."""

    def __init__(self) -> None:
        self.errors: list[ErrorCode] = []
        self._told = trio.Event()

    def __call__(self, error: ErrorCode) -> None:
        self.errors.append(error)
        self._told.set()

    async def wait(self) -> ErrorCode:
        with trio.fail_after(60):
            await self._told.wait()
        (error,) = self.errors
        return error


async def send(bench: Bench, what: MarkersToWrite) -> Outcome:
    outcome = Outcome()
    bench.broker.coordinators.marker_channels.send(what, outcome)
    assert outcome.errors == [], "never inside the call"
    bench.broker.server.finish_outside_work()
    return outcome


def stable_end(bench: Bench, topic_partition: TopicPartition) -> int:
    return bench.broker.replica_manager.partition_or_error(topic_partition).last_stable_offset


async def test_each_partition_gets_its_marker(bench: Bench) -> None:
    await bench.create_topic("t", 2)
    write(bench, T0)
    write(bench, T1)
    assert (stable_end(bench, T0), stable_end(bench, T1)) == (0, 0)
    outcome = await send(bench, markers(T0, T1))
    assert await outcome.wait() is ErrorCode.NONE
    assert (stable_end(bench, T0), stable_end(bench, T1)) == (2, 2)
    assert bench.broker.coordinators.marker_channels.unfinished == 0


async def test_a_transaction_without_partitions_is_over_at_once(bench: Bench) -> None:
    outcome = await send(bench, markers())
    assert await outcome.wait() is ErrorCode.NONE


async def test_partitions_that_do_not_exist_need_none(bench: Bench) -> None:
    await bench.create_topic("t")
    write(bench, T0)
    outcome = await send(bench, markers(T0, T1, TopicPartition("nowhere", 0)))
    assert await outcome.wait() is ErrorCode.NONE
    assert stable_end(bench, T0) == 2


async def test_a_newer_producer_ends_the_sending(bench: Bench) -> None:
    await bench.create_topic("t")
    write(bench, T0, epoch=5)
    outcome = await send(bench, markers(T0, epoch=4))
    assert await outcome.wait() is ErrorCode.INVALID_PRODUCER_EPOCH
    assert bench.broker.coordinators.marker_channels.unfinished == 0


async def test_what_fails_is_tried_again(bench: Bench) -> None:
    """The partition has no leader here for a while, as between two leaders."""
    await bench.create_topic("t")
    write(bench, T0)
    partition = bench.broker.replica_manager.partition_or_error(T0)
    partition.is_leader = False
    outcome = await send(bench, markers(T0))
    assert outcome.errors == []
    assert bench.broker.coordinators.marker_channels.unfinished == 1
    partition.is_leader = True
    assert await outcome.wait() is ErrorCode.NONE
    assert stable_end(bench, T0) == 2


async def test_what_another_coordinator_sends_now_is_dropped(bench: Bench) -> None:
    await bench.create_topic("t")
    write(bench, T0)
    partition = bench.broker.replica_manager.partition_or_error(T0)
    partition.is_leader = False
    dropped = await send(bench, markers(T0))
    channels = bench.broker.coordinators.marker_channels
    channels.drop(COORDINATOR_PARTITION + 1)
    assert channels.unfinished == 1
    channels.drop(COORDINATOR_PARTITION)
    assert channels.unfinished == 0
    partition.is_leader = True
    later = await send(bench, markers(T0, name="another"))
    assert await later.wait() is ErrorCode.NONE
    assert dropped.errors == []
    assert bench.log_end_offset("t") == 2, "one marker and no more"


async def test_a_transactional_id_ends_one_transaction_at_a_time(bench: Bench) -> None:
    await bench.create_topic("t")
    write(bench, T0)
    partition = bench.broker.replica_manager.partition_or_error(T0)
    partition.is_leader = False
    former = await send(bench, markers(T0))
    partition.is_leader = True
    latter = await send(bench, markers(T0, epoch=1))
    assert await latter.wait() is ErrorCode.NONE
    assert former.errors == []


class SilentBroker:
    """Broker 2 as the first one's metadata have it: it takes requests and answers none."""

    def __init__(self, bench: Bench, listener: trio.SocketListener) -> None:
        host, port = listener.socket.getsockname()[:2]
        self.bench = bench
        self.live = LiveBroker(2, (EndPoint("PLAINTEXT", host, port),))
        self.requested = trio.Event()
        self.is_dropped = trio.Event()
        self._listener = listener

    async def serve(self) -> None:
        stream = await self._listener.accept()
        async with stream:
            await stream.receive_some()
            self.requested.set()
            while await stream.receive_some():
                pass
            self.is_dropped.set()

    def leads(self, leader: int, brokers: Sequence[LiveBroker]) -> None:
        """Tell the metadata who leads t-0, and who is alive besides broker 1."""
        cache = self.bench.broker.metadata_cache
        state = cache.get_partition_info("t", 0)
        assert state is not None
        mine = cache.snapshot.alive_brokers[self.bench.broker.broker_id]
        cache.update_metadata(
            MetadataUpdate(1, 1, [mine, *brokers], [state._replace(leader=leader)])
        )


async def test_a_broker_that_is_gone_is_not_waited_for(bench: Bench, nursery: trio.Nursery) -> None:
    """A frozen one never says so: its connection stays as it is."""
    await bench.create_topic("t")
    write(bench, T0)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    silent = SilentBroker(bench, listener)
    nursery.start_soon(silent.serve)
    silent.leads(2, [silent.live])
    outcome = await send(bench, markers(T0))
    with trio.fail_after(60):
        await silent.requested.wait()
        assert outcome.errors == []
        silent.leads(1, [])
        assert await outcome.wait() is ErrorCode.NONE
        await silent.is_dropped.wait()
    assert stable_end(bench, T0) == 2

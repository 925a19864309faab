"""A leader writes its ISR into the metadata store, and leaves a note for the controller."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.broker.broker import Broker
from odradek.broker.interbroker import isr_writer
from odradek.broker.start import make_broker
from odradek.common.partition_state import PartitionState
from odradek.common.topic_partition import TopicPartition
from odradek.config.broker_config import BrokerConfig
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata.metadata_cache import MetadataSnapshot
from odradek.metadata.metadata_waiting import partitions_are_led, wait_for_metadata
from odradek.metadata_store import znodes
from odradek.protocol import messages
from odradek.replication.partition import isr_propagation
from odradek.replication.partition.partition import Partition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from conftest import Bench

T0 = TopicPartition("t", 0)
ABSENT = 99
PATH = znodes.partition_state_path("t", 0)
LAG_MS_MAX = 100


@pytest.fixture
async def broker(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Broker]:
    """A broker that soon finds a follower out of sync."""
    config = BrokerConfig.from_sources(
        {},
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path / "data"),
            "replica.lag.time.max.ms": str(LAG_MS_MAX),
            "replica.fetch.wait.max.ms": str(LAG_MS_MAX // 2),
        },
    )
    broker = await make_broker(config)
    ready = trio.Event()
    nursery.start_soon(broker.run, lambda advertised: ready.set())
    await ready.wait()
    await broker.controller.create_topics([TopicCreation("t", 1, 1)])
    assert await wait_for_metadata(broker.metadata_cache, partitions_are_led([("t", 1)]), 10_000)
    yield broker
    nursery.cancel_scope.cancel()


async def lead_with_an_absent_follower(broker: Broker, isr: tuple[int, ...]) -> Partition:
    """The partition is led here in a new epoch, as the store says, with a replica elsewhere."""
    partition = broker.replica_manager.partition_or_error(T0)
    node = await broker.metadata_store.get(PATH)
    state = znodes.decode_partition_state(node.data)
    state = state._replace(leader_epoch=state.leader_epoch + 1, isr=isr)
    version = await broker.metadata_store.set(
        PATH, znodes.encode_partition_state(state), node.version
    )
    errors = broker.replica_manager.become_leader_or_follower(
        state.leader,
        state.controller_epoch,
        [
            PartitionState(
                topic="t",
                topic_id=partition.topic_id,
                partition=0,
                controller_epoch=state.controller_epoch,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=isr,
                partition_epoch=version,
                replicas=(state.leader, ABSENT),
            )
        ],
    )
    assert not any(errors.values()), errors
    return partition


async def changed(broker: Broker, do: Callable[[], object]) -> tuple[int, ...]:
    """The ISR in the store after what is done has changed it."""
    written = trio.Event()
    watch = await broker.metadata_store.watch(PATH, lambda event: written.set())
    do()
    with trio.fail_after(60):
        await written.wait()
    watch.cancel()
    node = await broker.metadata_store.get(PATH)
    return znodes.decode_partition_state(node.data).isr


async def settled(partition: Partition) -> None:
    with trio.fail_after(60):
        while partition.pending_isr_change is not None:
            await trio.lowlevel.checkpoint()


async def test_a_follower_that_does_not_fetch_is_taken_from_the_isr(broker: Broker) -> None:
    partition = await lead_with_an_absent_follower(broker, (1, ABSENT))
    partition.log.assign_epoch_start(partition.leader_epoch, 0)
    append(partition)
    assert partition.high_watermark == 0
    assert await changed(broker, lambda: None) == (1,)
    await settled(partition)
    assert partition.isr == (1,)
    assert partition.high_watermark == 1
    assert partition.topic_stats.isr_shrinks == 1


def append(partition: Partition) -> None:
    from odradek.protocol.records import build_batch
    from odradek.storage.log.append_origin import AppendOrigin

    records = memoryview(build_batch([(None, b"value", 1_700_000_000_000, ())]))
    partition.append_records_to_leader(records, AppendOrigin.CLIENT, 1, 1_700_000_000_000)
    partition.log.flush_appends()


async def test_a_follower_that_fetches_all_joins_the_isr_and_the_controller_hears_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isr_propagation, "ISR_LINGER_MS", 0)
    monkeypatch.setattr(isr_writer, "CHECK_INTERVAL_MS", 1)
    await bench.create_topic("t")
    broker = bench.broker
    partition = await lead_with_an_absent_follower(broker, (1,))
    monkeypatch.setattr(broker.peers, "is_alive", lambda broker_id: True)
    follower = bench.another_client("follower")
    follower.connection.is_broker = True
    requested = messages.FetchRequest.FetchPartition(
        partition=0,
        current_leader_epoch=partition.leader_epoch,
        fetch_offset=0,
        partition_max_bytes=1000,
        log_start_offset=0,
    )
    fetch = messages.FetchRequest(
        replica_id=ABSENT,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1000,
        topics=[messages.FetchRequest.FetchTopic(topic="t", partitions=[requested])],
    )
    assert await changed(broker, lambda: follower.send(fetch, 12)) == (1, ABSENT)
    await settled(partition)
    assert partition.isr == (1, ABSENT)
    assert partition.topic_stats.isr_expands == 1

    def is_shown(snapshot: MetadataSnapshot) -> bool:
        return snapshot.partition_states["t"][0].isr == (1, ABSENT)

    assert await wait_for_metadata(broker.metadata_cache, is_shown, 10_000)


async def test_a_change_is_refused_where_somebody_else_was_faster(bench: Bench) -> None:
    await bench.create_topic("t")
    broker = bench.broker
    partition = await lead_with_an_absent_follower(broker, (1, ABSENT))
    node = await broker.metadata_store.get(PATH)
    await broker.metadata_store.set(PATH, node.data, node.version)  # so the version is another
    change = partition.maybe_shrink_isr(2**60)
    assert change is not None
    append(partition)
    broker.peers.submit_isr_change(partition, change)
    with trio.fail_after(60):
        while not partition.topic_stats.failed_isr_updates:
            await trio.lowlevel.checkpoint()
    assert partition.pending_isr_change is change
    assert partition.isr == (1, ABSENT)
    written = await broker.metadata_store.get(PATH)
    assert znodes.decode_partition_state(written.data).isr == (1, ABSENT)


async def test_a_change_whose_answer_was_lost_is_found_to_be_written(bench: Bench) -> None:
    await bench.create_topic("t")
    broker = bench.broker
    partition = await lead_with_an_absent_follower(broker, (1, ABSENT))
    append(partition)
    change = partition.maybe_shrink_isr(2**60)
    assert change is not None
    node = await broker.metadata_store.get(PATH)
    state = znodes.decode_partition_state(node.data)._replace(isr=change.isr)
    version = await broker.metadata_store.set(
        PATH, znodes.encode_partition_state(state), node.version
    )
    broker.peers.submit_isr_change(partition, change)
    await settled(partition)
    assert (partition.isr, partition.partition_epoch) == ((1,), version)

"""Replicas whose log directory is offline: they lose their leadership, and clients are told."""

from __future__ import annotations

import json

import pytest
import trio
from support.cluster import Cluster
from trio.testing import MockClock

from odradek.common.errors import ErrorCode
from odradek.common.partition_state import PartitionState
from odradek.common.sentinels import NO_LEADER
from odradek.common.topic_partition import TopicPartition
from odradek.controller.controller import Controller
from odradek.controller.topics.planning import TopicCreation
from odradek.metadata_store import znodes
from odradek.metadata_store.errors import StoreUnreachable

LOST = TopicPartition("t", 1)
NOTICED_SECONDS = 1.0
"""Of the clock that jumps: longer than the store's polling."""


def known(cluster: Cluster, partition: int) -> PartitionState:
    """What brokers answer clients of a partition."""
    state = cluster.channel.cache.get_partition_info("t", partition)
    assert state is not None
    return state


async def lose(
    autojump_clock: MockClock, cluster: Cluster, controller: Controller, *lost: TopicPartition
) -> None:
    """The broker cannot host these partitions any more, says so, and it is acted on."""
    cluster.channel.refusals.update(dict.fromkeys(lost, ErrorCode.KAFKA_STORAGE_ERROR))
    await controller.log_directories_changed()
    await noticed(autojump_clock)


async def noticed(autojump_clock: MockClock) -> None:
    """Wait until the store's watches have told, and the controller has done what follows."""
    await trio.sleep(NOTICED_SECONDS)


async def test_the_only_replica_leaves_its_partition_without_a_leader(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("t", 2, 1)])
        before = known(cluster, 1)
        await lose(autojump_clock, cluster, controller, LOST)
        state = known(cluster, 1)
        assert (state.leader, state.isr, state.offline_replicas) == (NO_LEADER, (1,), (1,))
        assert state.leader_epoch == before.leader_epoch + 1
        other = known(cluster, 0)
        assert (other.leader, other.leader_epoch, other.offline_replicas) == (1, 0, ())


async def test_what_was_decided_is_in_the_store(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("t", 2, 1)])
        await lose(autojump_clock, cluster, controller, LOST)
        async with cluster.store() as store:
            node = await store.get(znodes.partition_state_path("t", 1))
            assert znodes.decode_partition_state(node.data).leader == NO_LEADER
            assert await store.children(znodes.LOG_DIR_EVENTS) == []


async def test_another_failure_changes_only_what_is_new(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("t", 2, 1)])
        await lose(autojump_clock, cluster, controller, LOST)
        epoch = known(cluster, 1).leader_epoch
        await lose(autojump_clock, cluster, controller, TopicPartition("t", 0))
        assert known(cluster, 1).leader_epoch == epoch
        assert known(cluster, 0).leader == NO_LEADER


async def test_a_restart_without_the_directory_leads_the_rest(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("t", 2, 1)])
    async with cluster.store() as store:
        controller = cluster.controller(store)
        cluster.channel.refusals[LOST] = ErrorCode.KAFKA_STORAGE_ERROR
        await controller.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(controller.run)
            await noticed(autojump_clock)
            nursery.cancel_scope.cancel()
        assert known(cluster, 0).leader == 1
        assert (known(cluster, 1).leader, known(cluster, 1).offline_replicas) == (NO_LEADER, (1,))
        await controller.stop()
    async with cluster.running():
        assert (known(cluster, 1).leader, known(cluster, 1).offline_replicas) == (1, ())


async def test_another_replica_in_sync_leads(cluster: Cluster, autojump_clock: MockClock) -> None:
    async with cluster.store() as others:
        await cluster.register(others, 2)
        async with cluster.running() as controller:
            assignment = ((0, (1, 2)), (1, (1, 2)))
            await controller.create_topics([TopicCreation("t", assignments=assignment)])
            assert known(cluster, 1).isr == (1, 2)
            cluster.channel.refusals[1, LOST] = ErrorCode.KAFKA_STORAGE_ERROR
            await lose(autojump_clock, cluster, controller)
            state = known(cluster, 1)
            assert (state.leader, state.isr, state.offline_replicas) == (2, (2,), (1,))


async def test_a_partition_that_is_back_is_not_offline_any_more(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("t", 2, 1)])
        await lose(autojump_clock, cluster, controller, LOST)
        cluster.channel.refusals.clear()
        await controller.log_directories_changed()
        await noticed(autojump_clock)
        assert known(cluster, 1).offline_replicas == ()


async def test_a_note_that_the_store_did_not_take_is_left_again(
    cluster: Cluster, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with cluster.running() as controller:
        await controller.create_topics([TopicCreation("t", 2, 1)])
        create = cluster.controller_store.create
        refusals = [StoreUnreachable("store", "it does not answer")] * 2

        async def create_at_last(path: str, data: bytes = b"", **how: bool) -> str:
            if path == znodes.LOG_DIR_EVENT_PREFIX and refusals:
                raise refusals.pop()
            return await create(path, data, **how)

        monkeypatch.setattr(cluster.controller_store, "create", create_at_last)
        await lose(autojump_clock, cluster, controller, LOST)
        assert refusals == []
        assert known(cluster, 1).offline_replicas == (1,)


def test_the_event_is_written_as_kafka_writes_it() -> None:
    assert json.loads(znodes.encode_log_dir_event(7)) == {"version": 1, "broker": 7, "event": 1}
    assert znodes.LOG_DIR_EVENT_PREFIX == "/log_dir_event_notification/log_dir_event_"

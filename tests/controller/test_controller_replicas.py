"""The controller's decisions carried out by a real replica manager on real logs."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from support.cluster import Cluster, live_broker

from odradek.common.live_broker import LiveBroker
from odradek.common.topic_partition import TopicPartition
from odradek.config.topic_configs import log_config
from odradek.controller.channel.channel import (
    BecomeLeaderOrFollower,
    ControllerRequest,
    OnAnswer,
    PartitionErrors,
    StopReplica,
)
from odradek.controller.controller import Controller
from odradek.controller.topics.planning import NewPartitions, TopicCreation
from odradek.metadata.metadata_cache import MetadataCache, MetadataUpdate
from odradek.replication.replica_manager import ReplicaManager, ReplicaSettings
from odradek.runtime.timers import Timers
from odradek.storage.log.log_config import LogConfig
from odradek.storage.log_manager.log_manager import LogManager


class LocalChannel:
    """Broker 1 carries out at once what the controller tells it."""

    def __init__(self, replicas: ReplicaManager, cache: MetadataCache) -> None:
        self._replicas = replicas
        self._cache = cache

    def add_broker(self, broker: LiveBroker) -> None:
        assert broker.broker_id == 1

    def remove_broker(self, broker_id: int) -> None:
        pass

    def send(self, broker_id: int, request: ControllerRequest, on_answer: OnAnswer | None) -> None:
        errors = self._do(request)
        if on_answer is not None:
            on_answer(errors)

    def _do(self, request: ControllerRequest) -> PartitionErrors:
        if isinstance(request, BecomeLeaderOrFollower):
            return self._replicas.become_leader_or_follower(
                request.controller_id, request.controller_epoch, request.partition_states
            )
        if isinstance(request, StopReplica):
            return self._replicas.stop_replicas(request.controller_epoch, request.partitions)
        self._cache.update_metadata(
            MetadataUpdate(
                request.controller_id,
                request.controller_epoch,
                request.live_brokers,
                request.partition_states,
                request.is_full,
            )
        )
        return {}


class Server:
    """Broker 1 without its sockets."""

    def __init__(self, controller: Controller, replicas: ReplicaManager, cache: MetadataCache):
        self.controller = controller
        self.replicas = replicas
        self.cache = cache

    def topic_id(self, name: str) -> bytes:
        found = self.cache.topic_id(name)
        assert found is not None
        return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@asynccontextmanager
async def running(cluster: Cluster, folder: Path) -> AsyncIterator[Server]:
    """A broker's metadata and logs, from a start to a stop in good order."""

    def configure(overrides: Mapping[str, str]) -> LogConfig:
        return log_config(cluster.config, overrides)

    log_manager = LogManager([str(folder)], clock=cluster.clock)
    log_manager.load_logs()
    settings = ReplicaSettings(1, configure, lambda overrides: 1)
    replicas = ReplicaManager(settings, log_manager, cluster.clock, Timers())
    cache = MetadataCache(1)
    async with cluster.store() as store:
        controller = Controller(
            broker=live_broker(1),
            store=store,
            channel=LocalChannel(replicas, cache),
            config=cluster.config,
            clock=cluster.clock,
            random=random.Random(3),
        )
        await controller.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(controller.run)
            await trio.testing.wait_all_tasks_blocked()
            yield Server(controller, replicas, cache)
            await controller.stop()
            nursery.cancel_scope.cancel()
        log_manager.close()


def folders(folder: Path) -> list[str]:
    """The folders of partitions that are not about to go."""
    names = [path.name for path in folder.iterdir() if path.is_dir()]
    return sorted(name for name in names if not name.endswith("-delete"))


async def test_a_topic_made_is_led_here_and_has_its_logs(cluster: Cluster, folder: Path) -> None:
    async with running(cluster, folder) as server:
        await server.controller.create_topics(
            [TopicCreation("t", 60, 1, configs=[("segment.bytes", "2000000")])]
        )
        assert len(folders(folder)) == 60
        partition = server.replicas.partition_or_error(TopicPartition("t", 59))
        assert partition.is_leader
        assert partition.leader_epoch == 0
        assert partition.topic_id == server.topic_id("t")
        assert partition.log.config.segment_bytes == 2_000_000


async def test_a_restart_leads_the_same_logs_in_the_next_epoch(
    cluster: Cluster, folder: Path
) -> None:
    async with running(cluster, folder) as server:
        await server.controller.create_topics(
            [TopicCreation("t", 2, 1, configs=[("segment.bytes", "2000000")])]
        )
        await server.controller.create_partitions([NewPartitions("t", 3)])
        topic_id = server.topic_id("t")
    async with running(cluster, folder) as server:
        assert server.topic_id("t") == topic_id
        for index in range(3):
            partition = server.replicas.partition_or_error(TopicPartition("t", index))
            assert partition.leader_epoch == 1
            assert partition.log.config.segment_bytes == 2_000_000


async def test_a_deleted_topics_logs_are_gone(cluster: Cluster, folder: Path) -> None:
    async with running(cluster, folder) as server:
        await server.controller.create_topics(
            [TopicCreation("gone", 2, 1), TopicCreation("kept", 1, 1)]
        )
        await server.controller.delete_topics([server.topic_id("gone")])
        assert server.replicas.get_partition(TopicPartition("gone", 0)) is None
        assert folders(folder) == ["kept-0"]
        await server.controller.create_topics([TopicCreation("gone", 1, 1)])
        assert folders(folder) == ["gone-0", "kept-0"]


async def test_a_deletion_cut_off_by_a_crash_deletes_the_logs_at_the_next_start(
    cluster: Cluster, folder: Path
) -> None:
    async with running(cluster, folder) as server:
        await server.controller.create_topics(
            [TopicCreation("gone", 2, 1), TopicCreation("kept", 1, 1)]
        )
    async with cluster.store() as store:
        await store.create("/admin/delete_topics/gone")
    async with running(cluster, folder) as server:
        assert server.cache.get_all_topics() == {"kept"}
        assert folders(folder) == ["kept-0"]

"""AlterReplicaLogDirs: replicas move, and DescribeLogDirs tells of it meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from odradek.broker.maintenance.log_cleaner_task import LogCleanerTask
from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.records import build_batch
from odradek.runtime.steps import run_at_once
from odradek.storage.cleaner.cleaning_plan import CleanerSettings
from odradek.storage.cleaner.throttler import CleanerThrottler, CleaningCancelled
from odradek.storage.log_manager.log_directory import LogDirectory

if TYPE_CHECKING:
    from conftest import Bench

VERSIONS = (1, 2)
ORDERS = TopicPartition("orders", 0)
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def log_dirs(tmp_path: Path) -> str:
    return f"{tmp_path / 'a'},{tmp_path / 'b'}"


async def alter(bench: Bench, targets: dict[str, dict[str, list[int]]], version: int = 2) -> Any:
    """Paths to topics to partitions; the errors by partition."""
    make = messages.AlterReplicaLogDirsRequest
    dirs = [
        make.AlterReplicaLogDir(
            path=path,
            topics=[
                make.AlterReplicaLogDirTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        for path, topics in targets.items()
    ]
    answer = await bench.client.call(make(dirs=dirs), version)
    return {
        TopicPartition(topic.topic_name, each.partition_index): each.error_code
        for topic in answer.results
        for each in topic.partitions
    }


async def described(bench: Bench) -> list[tuple[str, int, bool]]:
    """Directory, lag and whether it is a copy, of all that is said of the partition."""
    request = messages.DescribeLogDirsRequest
    requested = [request.DescribableLogDirTopic(topic="orders", partitions=[0])]
    answer = await bench.client.call(request(topics=requested), 5)
    return [
        (directory.log_dir, each.offset_lag, each.is_future_key)
        for directory in answer.results
        for topic in directory.topics
        for each in topic.partitions
    ]


async def produce(bench: Bench, count: int, size: int = 1000) -> None:
    request = messages.ProduceRequest
    for _ in range(count):
        records = memoryview(build_batch([(b"key", bytes(size), 1_700_000_000_000, ())]))
        part = request.PartitionProduceData(index=0, records=records)
        topics = [request.TopicProduceData(name="orders", partition_data=[part])]
        answer = await bench.client.call(request(acks=1, timeout_ms=1000, topic_data=topics), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def both(bench: Bench) -> tuple[LogDirectory, LogDirectory]:
    """Where the replica is, and the other directory."""
    manager = bench.broker.log_manager
    here = manager.directory_of(ORDERS)
    assert here is not None
    return here, next(each for each in manager.directories if each is not here)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_replica_moves_and_its_description_with_it(bench: Bench, version: int) -> None:
    await bench.create_topic("orders")
    await produce(bench, 20)
    _, other = both(bench)
    moves = bench.broker.replica_manager.future_replicas
    errors = await alter(bench, {other.path: {"orders": [0]}}, version)
    assert errors == {ORDERS: ErrorCode.NONE}
    with trio.fail_after(60):
        while len(moves):
            await trio.lowlevel.checkpoint()
    assert await described(bench) == [(other.path, 0, False)]


async def test_a_copy_is_described_with_what_it_lacks(bench: Bench) -> None:
    await bench.create_topic("orders")
    await produce(bench, 3, size=300_000)
    here, other = both(bench)
    bench.broker.peers.moves.stop()  # nobody copies
    await alter(bench, {other.path: {"orders": [0]}})
    assert sorted(await described(bench)) == sorted([(here.path, 0, False), (other.path, 3, True)])
    await alter(bench, {here.path: {"orders": [0]}})
    assert await described(bench) == [(here.path, 0, False)]


async def test_each_partition_has_an_error_of_its_own(bench: Bench) -> None:
    await bench.create_topic("orders")
    here, _ = both(bench)
    nowhere, unknown = TopicPartition("orders", 0), TopicPartition("never", 7)
    errors = await alter(bench, {"/nowhere": {"orders": [0]}, here.path: {"never": [7]}})
    assert errors == {
        nowhere: ErrorCode.LOG_DIR_NOT_FOUND,
        unknown: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_of_two_wishes_the_last_counts(bench: Bench) -> None:
    await bench.create_topic("orders")
    here, other = both(bench)
    bench.broker.peers.moves.stop()
    errors = await alter(bench, {other.path: {"orders": [0]}, here.path: {"orders": [0]}})
    assert errors == {ORDERS: ErrorCode.NONE}
    assert not bench.broker.log_manager.future_logs


async def test_who_may_not_alter_the_cluster_is_refused(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.create_topic("orders")
    _, other = both(bench)
    requested: list[tuple[str, str]] = []

    def refuse(request: Any, operation: str, resource_type: str, resource_name: str) -> bool:
        requested.append((operation, resource_type))
        return False

    bench.authorize_by(refuse)
    errors = await alter(bench, {other.path: {"orders": [0]}})
    assert errors == {ORDERS: ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    assert requested == [("ALTER", "CLUSTER")]
    assert not bench.broker.log_manager.future_logs


async def test_the_rate_of_moves_is_changed_while_the_broker_runs(bench: Bench) -> None:
    moves = bench.broker.replica_manager.future_replicas
    make = messages.IncrementalAlterConfigsRequest
    change = make.AlterableConfig(name=RATE, config_operation=0, value="12345")
    resource = make.AlterConfigsResource(
        resource_type=4, resource_name=str(bench.broker.broker_id), configs=[change]
    )
    bounded = trio.Event()
    bench.broker.config.subscribe((RATE,), bounded.set)
    answer = await bench.client.call(make(resources=[resource]), 1)
    assert answer.responses[0].error_code == ErrorCode.NONE
    with trio.fail_after(60):
        await bounded.wait()
    assert moves.quota.bytes_per_second_max == 12345


async def test_a_log_that_moves_is_not_compacted(bench: Bench) -> None:
    await bench.create_topic(
        "orders", cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0"
    )
    await produce(bench, 30, size=100_000)
    log = bench.broker.log_manager.logs[ORDERS]
    assert len(log.segments) > 2
    broker = bench.broker
    cleaner = LogCleanerTask(
        broker.config,
        broker.replica_manager,
        broker.clock,
        broker.timers,
        broker.supervisor.start_task,
    ).manager
    found = run_at_once(cleaner.find_filthiest())
    assert found is not None
    log.flush_to_disk()
    write = run_at_once(bench.broker.log_manager.prepare_recovery_points())
    assert write is not None
    write()
    settings = CleanerSettings(1 << 20, 1 << 20)
    cleaning = cleaner.begin(found, settings, CleanerThrottler(bench.broker.clock, lambda _: None))
    (group, *_) = cleaning.round.prepare()
    cleaned = cleaning.round.clean(group)
    here, other = both(bench)
    bench.broker.peers.moves.stop()
    await alter(bench, {other.path: {"orders": [0]}})
    with pytest.raises(CleaningCancelled):
        cleaner.swap_in(cleaning, cleaned)
    assert run_at_once(cleaner.find_filthiest()) is None
    await alter(bench, {here.path: {"orders": [0]}})
    assert run_at_once(cleaner.find_filthiest()) is not None

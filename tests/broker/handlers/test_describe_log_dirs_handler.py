"""DescribeLogDirs: what lies where, how large it is, and which directory is offline."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.topic_partition import TopicPartition
from odradek.protocol import messages
from odradek.protocol.records import build_batch

if TYPE_CHECKING:
    from conftest import Bench

VERSIONS = range(1, 6)


async def describe(bench: Bench, topics: dict[str, list[int]] | None, version: int = 5) -> Any:
    """The one directory of the broker under test."""
    request = messages.DescribeLogDirsRequest
    requested = None
    if topics is not None:
        requested = [
            request.DescribableLogDirTopic(topic=name, partitions=partitions)
            for name, partitions in topics.items()
        ]
    answer = await bench.client.call(request(topics=requested), version)
    assert answer.error_code == ErrorCode.NONE
    (directory,) = answer.results
    return directory


def partitions_of(directory: Any) -> dict[str, list[int]]:
    return {
        topic.name: [each.partition_index for each in topic.partitions]
        for topic in directory.topics
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_partitions_are_described_where_none_is_named(bench: Bench, version: int) -> None:
    await bench.create_topic("a", 3)
    await bench.create_topic("b", 1)
    directory = await describe(bench, None, version)
    assert directory.error_code == ErrorCode.NONE
    assert os.path.isabs(directory.log_dir)
    assert directory.log_dir == bench.broker.log_manager.log_dirs[0]
    assert partitions_of(directory) == {"a": [0, 1, 2], "b": [0]}


async def test_only_what_is_asked_for_and_there_is_described(bench: Bench) -> None:
    await bench.create_topic("a", 3)
    await bench.create_topic("b", 1)
    directory = await describe(bench, {"a": [2, 7], "c": [0]})
    assert partitions_of(directory) == {"a": [2]}
    assert partitions_of(await describe(bench, {})) == {}


async def test_sizes_are_those_of_the_files_and_a_leader_does_not_lag(bench: Bench) -> None:
    await bench.create_topic("a", 1)
    log = bench.broker.log_manager.logs[TopicPartition("a", 0)]
    await produce(bench, "a")
    (partition,) = (await describe(bench, None)).topics[0].partitions
    assert partition.partition_size == os.path.getsize(log.segments.active.log_path) > 0
    assert (partition.offset_lag, partition.is_future_key) == (0, False)


@pytest.mark.parametrize(("version", "is_told"), [(3, False), (4, True), (5, True)])
async def test_the_file_systems_size_is_told_from_version_4_on(
    bench: Bench, version: int, is_told: bool
) -> None:
    directory = await describe(bench, None, version)
    space = os.statvfs(directory.log_dir)
    expected = space.f_blocks * space.f_frsize if is_told else -1
    assert directory.total_bytes == expected
    assert (0 < directory.usable_bytes < expected) is is_told


async def test_an_offline_directory_says_so_and_nothing_else(bench: Bench) -> None:
    await bench.create_topic("a", 1)
    (own,) = bench.broker.log_manager.directories
    own.fail("the test wants it so")
    directory = await describe(bench, None)
    assert directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (directory.topics, directory.total_bytes, directory.usable_bytes) == ([], -1, -1)
    assert directory.log_dir == own.path


async def test_a_directory_that_cannot_be_asked_goes_offline(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(os, "statvfs", fail)
    noted: list[str] = []
    monkeypatch.setattr(
        bench.broker.log_manager, "disk_failed", lambda path, error: noted.append(path)
    )
    directory = await describe(bench, None)
    assert directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert noted == bench.broker.log_manager.log_dirs


async def produce(bench: Bench, topic: str) -> None:
    request = messages.ProduceRequest
    records = memoryview(build_batch([(None, b"value", 1_700_000_000_000, ())]))
    part = request.PartitionProduceData(index=0, records=records)
    topics = [request.TopicProduceData(name=topic, partition_data=[part])]
    answer = await bench.client.call(request(acks=1, timeout_ms=1000, topic_data=topics), 9)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

"""Refusals that one broker alone can be brought to: leadership lost meanwhile, a failed disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from odradek.common.errors import ErrorCode
from odradek.common.live_broker import EndPoint, LiveBroker
from odradek.common.partition_state import PartitionState
from odradek.common.topic_partition import TopicPartition
from odradek.metadata.metadata_cache import MetadataUpdate
from odradek.protocol import messages
from odradek.protocol.records import build_batch

if TYPE_CHECKING:
    from conftest import Bench

NOW_MS = 1_700_000_000_000
T0 = TopicPartition("t", 0)
OTHER = 99


def produce() -> Any:
    make = messages.ProduceRequest
    records = bytes(build_batch([(None, b"value", NOW_MS, ())]))
    data = make.PartitionProduceData(index=0, records=records)
    topic = make.TopicProduceData(name="t", partition_data=[data])
    return make(acks=-1, timeout_ms=60_000, topic_data=[topic])


def fetch() -> Any:
    make = messages.FetchRequest
    partition = make.FetchPartition(partition=0, partition_max_bytes=1000)
    topic = make.FetchTopic(topic="t", partitions=[partition])
    return make(max_wait_ms=0, max_bytes=1000, session_epoch=-1, topics=[topic])


def led_by(bench: Bench, leader: int) -> None:
    """The controller's order that one of this broker and another lead t-0."""
    manager = bench.broker.replica_manager
    partition = manager.get_partition(T0)
    assert partition is not None
    both = (partition.broker_id, OTHER)
    state = PartitionState(
        topic="t",
        topic_id=partition.topic_id,
        partition=0,
        controller_epoch=1,
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        isr=both,
        partition_epoch=partition.partition_epoch + 1,
        replicas=both,
    )
    errors = manager.become_leader_or_follower(1, 1 << 20, [state])
    assert errors == {T0: ErrorCode.NONE}
    bench.broker.server.finish_outside_work()


def announce_other(bench: Bench) -> None:
    """The other broker lives, and clients reach it by this address."""
    cache = bench.broker.metadata_cache
    other = LiveBroker(OTHER, (EndPoint("PLAINTEXT", "other", 9_999),), "r")
    living = (*cache.snapshot.alive_brokers.values(), other)
    cache.update_metadata(MetadataUpdate(cache.controller_id or 0, 1 << 20, living))


@pytest.mark.parametrize("is_repeated", [False, True], ids=["first", "like the last"])
async def test_a_produce_that_waits_for_replicas_is_told_who_leads_meanwhile(
    bench: Bench, is_repeated: bool
) -> None:
    await bench.create_topic("t")
    announce_other(bench)
    if is_repeated:
        answer = await bench.client.call(produce(), 10)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
    led_by(bench, bench.broker.broker_id)
    bench.client.send(produce(), 10)
    assert bench.client.connection.output == []
    led_by(bench, OTHER)
    answer = await bench.client.receive(0, 10)
    (refused,) = answer.responses[0].partition_responses
    partition = bench.broker.replica_manager.get_partition(T0)
    assert partition is not None
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.current_leader.leader_id == OTHER
    assert refused.current_leader.leader_epoch == partition.leader_epoch
    assert [(node.node_id, node.host, node.port, node.rack) for node in answer.node_endpoints] == [
        (OTHER, "other", 9_999, "r")
    ]


async def test_a_leader_that_cannot_be_reached_is_named_without_an_address(bench: Bench) -> None:
    await bench.create_topic("t")
    led_by(bench, OTHER)
    answer = await bench.client.call(produce(), 10)
    (refused,) = answer.responses[0].partition_responses
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused.current_leader.leader_id == OTHER
    assert answer.node_endpoints == []


async def test_a_partition_on_a_failed_disk_is_a_storage_error(bench: Bench) -> None:
    """Fetch has no such error before version 6, and says that another may lead."""
    await bench.create_topic("t")
    bench.broker.replica_manager.take_offline([T0])
    produced = await bench.client.call(produce(), 10)
    (refused,) = produced.responses[0].partition_responses
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert refused.current_leader.leader_id == -1
    for version, expected in (
        (5, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (6, ErrorCode.KAFKA_STORAGE_ERROR),
    ):
        fetched = await bench.client.call(fetch(), version)
        assert fetched.responses[0].partitions[0].error_code == expected

"""What the group APIs answer while the coordinator reads its partition, over TCP."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.group_errors import group_error
from support.group_peer import GroupPeer, until

from odradek.broker.coordinator.group.offsets import OffsetAndMetadata
from odradek.broker.coordinator.group.records import offset_record
from odradek.protocol import messages
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records import build_batch

pytestmark = pytest.mark.clients

OFFSETS = "__consumer_offsets"
GROUP = "loaded"
MAY_WRITE_INTERNAL_TOPICS = "__admin_client"
BATCHES = 30
RECORDS_PER_BATCH = 8_000
PRODUCE_VERSION = 9
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def fill_offsets_partition(port: int) -> None:
    """Let the coordinator have much to read: one commit, again and again."""
    position = OffsetAndMetadata(7, metadata="words", commit_timestamp_ms=int(time.time() * 1000))
    record = offset_record(GROUP, "orders", 0, position)
    build = [(record.key, record.value, position.commit_timestamp_ms, [])]
    batch = bytes(build_batch(build * RECORDS_PER_BATCH))
    of_partition = messages.ProduceRequest.PartitionProduceData(index=0, records=batch)
    of_topic = messages.ProduceRequest.TopicProduceData(name=OFFSETS, partition_data=[of_partition])
    request = messages.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[of_topic])
    with GroupPeer(port, MAY_WRITE_INTERNAL_TOPICS) as peer:
        for _ in range(BATCHES):
            answer = peer.ask(request, PRODUCE_VERSION)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE


def error_of(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


@group_error("COORDINATOR_LOAD_IN_PROGRESS", "JoinGroup", "SyncGroup", "LeaveGroup")
@group_error("COORDINATOR_LOAD_IN_PROGRESS", "OffsetCommit", "OffsetFetch", "OffsetDelete")
@group_error("COORDINATOR_LOAD_IN_PROGRESS", "DeleteGroups", "DescribeGroups", "ListGroups")
@group_error("COORDINATOR_LOAD_IN_PROGRESS", "ConsumerGroupHeartbeat", "ConsumerGroupDescribe")
def test_coordinator_that_still_reads_says_so(start_broker) -> None:
    broker = start_broker(settings={"offsets.topic.num.partitions": "1"})
    with GroupPeer(broker.port) as peer:
        peer.wait_for_coordinator(GROUP)
        peer.create_topic("orders")
        member = peer.stable_alone("stable").member_id
    fill_offsets_partition(broker.port)
    broker.restart()

    with GroupPeer(broker.port) as peer:
        until(lambda: error_of(peer.describe(GROUP)) == LOADING)
        assert error_of(peer.join(GROUP)) == LOADING
        assert error_of(peer.leave("stable", member)) == LOADING
        assert peer.commit(GROUP, {("orders", 0): 1}) == {("orders", 0): LOADING}
        assert error_of(peer.fetch(GROUP)) == LOADING
        assert error_of(peer.delete_offsets(GROUP, "orders")) == LOADING
        assert peer.delete(GROUP) == LOADING
        assert error_of(peer.list()) == LOADING
        assert error_of(peer.beat(GROUP, "member")) == LOADING
        assert error_of(peer.describe_consumer_group(GROUP)) == LOADING
        assert error_of(peer.sync("stable", member, 1)) == LOADING
        # Members that are at work are not disturbed.
        assert peer.heartbeat("stable", member, 1) == ErrorCode.NONE
        assert error_of(peer.describe(GROUP)) == LOADING, "it had read all too early"

        until(lambda: error_of(peer.describe(GROUP)) != LOADING)
        (partition,) = peer.fetch(GROUP).topics[0].partitions
        assert (partition.committed_offset, partition.metadata) == (7, "words")
        assert peer.state("stable") == "Stable"

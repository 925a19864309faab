"""What the group APIs answer while the coordinator reads its partition, over TCP."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.group_errors import group_error
from support.group_peer import GroupPeer

from odradek.common.errors import ErrorCode
from odradek.coordinator.group.offsets import OffsetAndMetadata
from odradek.coordinator.group.records import offset_record
from odradek.protocol import messages
from odradek.protocol.records import build_batch
from odradek.testing.waiting import wait_until

pytestmark = pytest.mark.clients

OFFSETS = "__consumer_offsets"
MAY_WRITE_INTERNAL_TOPICS = "__admin_client"
TRIES_MAX = 10
"""A test that stands still while a broker starts comes too late to see it read."""
BATCHES = 30
RECORDS_PER_BATCH = 8_000
PRODUCE_VERSION = 9
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def fill_offsets_partition(port: int, group: str) -> None:
    """Let the coordinator have much to read: one commit, again and again."""
    position = OffsetAndMetadata(7, metadata="words", commit_timestamp_ms=int(time.time() * 1000))
    record = offset_record(group, "orders", 0, position)
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
@pytest.mark.slow  # there must be much to read
def test_coordinator_that_still_reads_says_so(start_broker) -> None:
    broker = start_broker(settings={"offsets.topic.num.partitions": "1"})
    for number in range(TRIES_MAX):
        loaded, stable = f"loaded-{number}", f"stable-{number}"
        with GroupPeer(broker.port) as peer:
            peer.wait_for_coordinator(loaded)
            peer.create_topic("orders")
            member = peer.stable_alone(stable).member_id
        fill_offsets_partition(broker.port, loaded)
        broker.restart()
        with GroupPeer(broker.port) as peer:
            answers = ask_everything(peer, loaded, stable, member)
            if answers["DescribeGroups"] != LOADING:
                continue  # it had read all too early, and what was asked of it may be done
            # Members that are at work are not disturbed.
            assert answers.pop("Heartbeat") == ErrorCode.NONE
            assert answers == dict.fromkeys(answers, LOADING)

            wait_until(lambda peer=peer, group=loaded: error_of(peer.describe(group)) != LOADING)
            (partition,) = peer.fetch(loaded).topics[0].partitions
            assert (partition.committed_offset, partition.metadata) == (7, "words")
            assert peer.state(stable) == "Stable"
            return
    raise AssertionError("each time it had read all too early")


def ask_everything(peer: GroupPeer, loaded: str, stable: str, member: str) -> dict[str, ErrorCode]:
    """What each API answers of two groups, one after the other; of DescribeGroups, at last."""
    wait_until(lambda: error_of(peer.describe(loaded)) != ErrorCode.NOT_COORDINATOR)
    return {
        "JoinGroup": error_of(peer.join(loaded)),
        "LeaveGroup": error_of(peer.leave(stable, member)),
        "OffsetCommit": peer.commit(loaded, {("orders", 0): 1})["orders", 0],
        "OffsetFetch": error_of(peer.fetch(loaded)),
        "OffsetDelete": error_of(peer.delete_offsets(loaded, "orders")),
        "DeleteGroups": peer.delete(loaded),
        "ListGroups": error_of(peer.list_groups()),
        "ConsumerGroupHeartbeat": error_of(peer.beat(loaded, "member")),
        "ConsumerGroupDescribe": error_of(peer.describe_consumer_group(loaded)),
        "SyncGroup": error_of(peer.sync(stable, member, 1)),
        "Heartbeat": peer.heartbeat(stable, member, 1),
        "DescribeGroups": error_of(peer.describe(loaded)),
    }

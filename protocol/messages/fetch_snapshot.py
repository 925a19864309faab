"""FetchSnapshot: read part of a KRaft snapshot."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import (
    Records,
    Struct,
    array,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uint16,
    uuid,
)


class FetchSnapshotRequest(Message, api_key=59, versions="0-1", flexible="0+"):
    cluster_id: str | None = string(nullable="0+", default=None, tag=0)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=2147483647)
    topics: list[TopicSnapshot] = array()

    class TopicSnapshot(Struct):
        name: str = string()
        partitions: list[FetchSnapshotRequest.PartitionSnapshot] = array()

    class PartitionSnapshot(Struct):
        partition: int = int32()
        current_leader_epoch: int = int32()
        snapshot_id: FetchSnapshotRequest.SnapshotId = struct()
        position: int = int64()
        replica_directory_id: bytes = uuid("1+", tag=0, ignorable=True)

    class SnapshotId(Struct):
        end_offset: int = int64()
        epoch: int = int32()


class FetchSnapshotResponse(Message, api_key=59, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    topics: list[TopicSnapshot] = array()
    node_endpoints: list[NodeEndpoint] = array("1+", tag=0)

    class TopicSnapshot(Struct):
        name: str = string()
        partitions: list[FetchSnapshotResponse.PartitionSnapshot] = array()

    class NodeEndpoint(Struct):
        node_id: int = int32("1+")
        host: str = string("1+")
        port: int = uint16("1+")

    class PartitionSnapshot(Struct):
        index: int = int32()
        error_code: int = int16()
        snapshot_id: FetchSnapshotResponse.SnapshotId = struct()
        current_leader: FetchSnapshotResponse.LeaderIdAndEpoch = struct(tag=0)
        size: int = int64()
        position: int = int64()
        unaligned_records: Records = records()

    class SnapshotId(Struct):
        end_offset: int = int64()
        epoch: int = int32()

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32()
        leader_epoch: int = int32()

"""FetchSnapshot: read part of a KRaft snapshot."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, Records, String, Struct, Uint16, Uuid

FetchSnapshotRequest = Message(
    "FetchSnapshotRequest",
    Field("cluster_id", String, nullable="0+", default=None, tag=0),
    Field("replica_id", Int32, default=-1),
    Field("max_bytes", Int32, default=0x7FFFFFFF),
    Field(
        "topics",
        Array(
            "TopicSnapshot",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "PartitionSnapshot",
                    Field("partition", Int32),
                    Field("current_leader_epoch", Int32),
                    Field(
                        "snapshot_id",
                        Struct("SnapshotId", Field("end_offset", Int64), Field("epoch", Int32)),
                    ),
                    Field("position", Int64),
                    Field("replica_directory_id", Uuid, "1+", tag=0, ignorable=True),
                ),
            ),
        ),
    ),
    api_key=59,
    versions="0-1",
    flexible="0+",
)

FetchSnapshotResponse = Message(
    "FetchSnapshotResponse",
    Field("throttle_time_ms", Int32, ignorable=True),
    Field("error_code", Int16),
    Field(
        "topics",
        Array(
            "TopicSnapshot",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "PartitionSnapshot",
                    Field("index", Int32),
                    Field("error_code", Int16),
                    Field(
                        "snapshot_id",
                        Struct("SnapshotId", Field("end_offset", Int64), Field("epoch", Int32)),
                    ),
                    Field(
                        "current_leader",
                        Struct(
                            "LeaderIdAndEpoch",
                            Field("leader_id", Int32),
                            Field("leader_epoch", Int32),
                        ),
                        tag=0,
                    ),
                    Field("size", Int64),
                    Field("position", Int64),
                    Field("unaligned_records", Records),
                ),
            ),
        ),
    ),
    Field(
        "node_endpoints",
        Array(
            "NodeEndpoint",
            Field("node_id", Int32, "1+"),
            Field("host", String, "1+"),
            Field("port", Uint16, "1+"),
        ),
        "1+",
        tag=0,
    ),
    api_key=59,
    versions="0-1",
    flexible="0+",
)

"""DescribeQuorum: the state of a KRaft quorum."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String, Struct, Uint16, Uuid

REPLICA_STATE = Struct(
    "ReplicaState",
    Field("replica_id", Int32),
    Field("replica_directory_id", Uuid, "2+"),
    Field("log_end_offset", Int64),
    Field("last_fetch_timestamp", Int64, "1+", default=-1, ignorable=True),
    Field("last_caught_up_timestamp", Int64, "1+", default=-1, ignorable=True),
)

DescribeQuorumRequest = Message(
    "DescribeQuorumRequest",
    Field(
        "topics",
        Array(
            "TopicData",
            Field("topic_name", String),
            Field("partitions", Array("PartitionData", Field("partition_index", Int32))),
        ),
    ),
    api_key=55,
    versions="0-2",
    flexible="0+",
)

DescribeQuorumResponse = Message(
    "DescribeQuorumResponse",
    Field("error_code", Int16),
    Field("error_message", String, "2+", nullable="2+", default=None, ignorable=True),
    Field(
        "topics",
        Array(
            "TopicData",
            Field("topic_name", String),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field(
                        "error_message", String, "2+", nullable="2+", default=None, ignorable=True
                    ),
                    Field("leader_id", Int32),
                    Field("leader_epoch", Int32),
                    Field("high_watermark", Int64),
                    Field("current_voters", Array(REPLICA_STATE)),
                    Field("observers", Array(REPLICA_STATE)),
                ),
            ),
        ),
    ),
    Field(
        "nodes",
        Array(
            "Node",
            Field("node_id", Int32, "2+"),
            Field(
                "listeners",
                Array(
                    "Listener",
                    Field("name", String, "2+"),
                    Field("host", String, "2+"),
                    Field("port", Uint16, "2+"),
                ),
                "2+",
            ),
        ),
        "2+",
    ),
    api_key=55,
    versions="0-2",
    flexible="0+",
)

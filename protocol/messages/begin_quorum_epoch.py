"""BeginQuorumEpoch: a KRaft leader announces itself."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String, Uint16, Uuid

BeginQuorumEpochRequest = Message(
    "BeginQuorumEpochRequest",
    Field("cluster_id", String, nullable="0+", default=None),
    Field("voter_id", Int32, "1+", default=-1, ignorable=True),
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
                    Field("voter_directory_id", Uuid, "1+", ignorable=True),
                    Field("leader_id", Int32),
                    Field("leader_epoch", Int32),
                ),
            ),
        ),
    ),
    Field(
        "leader_endpoints",
        Array(
            "LeaderEndpoint",
            Field("name", String, "1+"),
            Field("host", String, "1+"),
            Field("port", Uint16, "1+"),
        ),
        "1+",
        ignorable=True,
    ),
    api_key=53,
    versions="0-1",
    flexible="1+",
)

BeginQuorumEpochResponse = Message(
    "BeginQuorumEpochResponse",
    Field("error_code", Int16),
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
                    Field("leader_id", Int32),
                    Field("leader_epoch", Int32),
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
    api_key=53,
    versions="0-1",
    flexible="1+",
)

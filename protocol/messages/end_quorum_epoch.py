"""EndQuorumEpoch: a KRaft leader resigns."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String, Uint16, Uuid

EndQuorumEpochRequest = Message(
    "EndQuorumEpochRequest",
    Field("cluster_id", String, nullable="0+", default=None),
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
                    Field("leader_id", Int32),
                    Field("leader_epoch", Int32),
                    Field("preferred_successors", Array(Int32), "0", ignorable=True),
                    Field(
                        "preferred_candidates",
                        Array(
                            "ReplicaInfo",
                            Field("candidate_id", Int32, "1+"),
                            Field("candidate_directory_id", Uuid, "1+"),
                        ),
                        "1+",
                        ignorable=True,
                    ),
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
    api_key=54,
    versions="0-1",
    flexible="1+",
)

EndQuorumEpochResponse = Message(
    "EndQuorumEpochResponse",
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
    api_key=54,
    versions="0-1",
    flexible="1+",
)

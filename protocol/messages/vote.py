"""Vote: a KRaft candidate asks for votes."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, String, Uint16, Uuid

VoteRequest = Message(
    "VoteRequest",
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
                    Field("replica_epoch", Int32),
                    Field("replica_id", Int32),
                    Field("replica_directory_id", Uuid, "1+", ignorable=True),
                    Field("voter_directory_id", Uuid, "1+", ignorable=True),
                    Field("last_offset_epoch", Int32),
                    Field("last_offset", Int64),
                    Field("pre_vote", Bool, "2+"),
                ),
            ),
        ),
    ),
    api_key=52,
    versions="0-2",
    flexible="0+",
)

VoteResponse = Message(
    "VoteResponse",
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
                    Field("vote_granted", Bool),
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
    api_key=52,
    versions="0-2",
    flexible="0+",
)

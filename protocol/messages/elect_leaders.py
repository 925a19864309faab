"""ElectLeaders: elect preferred or unclean leaders."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, String

ElectLeadersRequest = Message(
    "ElectLeadersRequest",
    Field("election_type", Int8, "1+"),
    Field(
        "topic_partitions",
        Array("TopicPartitions", Field("topic", String), Field("partitions", Array(Int32))),
        nullable="0+",
    ),
    Field("timeout_ms", Int32, default=60000),
    api_key=43,
    versions="0-2",
    flexible="2+",
)

ElectLeadersResponse = Message(
    "ElectLeadersResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16, "1+"),
    Field(
        "replica_election_results",
        Array(
            "ReplicaElectionResult",
            Field("topic", String),
            Field(
                "partition_result",
                Array(
                    "PartitionResult",
                    Field("partition_id", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                ),
            ),
        ),
    ),
    api_key=43,
    versions="0-2",
    flexible="2+",
)

"""StopReplica: the controller tells a broker to give up replicas (until Kafka 3.9)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, String

StopReplicaRequest = Message(
    "StopReplicaRequest",
    Field("controller_id", Int32),
    Field("is_kraft_controller", Bool, "4+"),
    Field("controller_epoch", Int32),
    Field("broker_epoch", Int64, "1+", default=-1, ignorable=True),
    Field("delete_partitions", Bool, "0-2"),
    Field(
        "ungrouped_partitions",
        Array(
            "StopReplicaPartitionV0",
            Field("topic_name", String, "0"),
            Field("partition_index", Int32, "0"),
        ),
        "0",
    ),
    Field(
        "topics",
        Array(
            "StopReplicaTopicV1",
            Field("name", String, "1-2"),
            Field("partition_indexes", Array(Int32), "1-2"),
        ),
        "1-2",
    ),
    Field(
        "topic_states",
        Array(
            "StopReplicaTopicState",
            Field("topic_name", String, "3+"),
            Field(
                "partition_states",
                Array(
                    "StopReplicaPartitionState",
                    Field("partition_index", Int32, "3+"),
                    Field("leader_epoch", Int32, "3+", default=-1),
                    Field("delete_partition", Bool, "3+"),
                ),
                "3+",
            ),
        ),
        "3+",
    ),
    api_key=5,
    versions="0-4",
    flexible="2+",
)

StopReplicaResponse = Message(
    "StopReplicaResponse",
    Field("error_code", Int16),
    Field(
        "partition_errors",
        Array(
            "StopReplicaPartitionError",
            Field("topic_name", String),
            Field("partition_index", Int32),
            Field("error_code", Int16),
        ),
    ),
    api_key=5,
    versions="0-4",
    flexible="2+",
)

"""AssignReplicasToDirs: which log directory holds which replica (KIP-858)."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, Uuid

AssignReplicasToDirsRequest = Message(
    "AssignReplicasToDirsRequest",
    Field("broker_id", Int32),
    Field("broker_epoch", Int64, default=-1),
    Field(
        "directories",
        Array(
            "DirectoryData",
            Field("id", Uuid),
            Field(
                "topics",
                Array(
                    "TopicData",
                    Field("topic_id", Uuid),
                    Field("partitions", Array("PartitionData", Field("partition_index", Int32))),
                ),
            ),
        ),
    ),
    api_key=73,
    versions="0",
    flexible="0+",
)

AssignReplicasToDirsResponse = Message(
    "AssignReplicasToDirsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field(
        "directories",
        Array(
            "DirectoryData",
            Field("id", Uuid),
            Field(
                "topics",
                Array(
                    "TopicData",
                    Field("topic_id", Uuid),
                    Field(
                        "partitions",
                        Array(
                            "PartitionData",
                            Field("partition_index", Int32),
                            Field("error_code", Int16),
                        ),
                    ),
                ),
            ),
        ),
    ),
    api_key=73,
    versions="0",
    flexible="0+",
)

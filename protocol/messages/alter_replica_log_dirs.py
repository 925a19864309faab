"""AlterReplicaLogDirs: move replicas between a broker's log directories."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String

AlterReplicaLogDirsRequest = Message(
    "AlterReplicaLogDirsRequest",
    Field(
        "dirs",
        Array(
            "AlterReplicaLogDir",
            Field("path", String),
            Field(
                "topics",
                Array(
                    "AlterReplicaLogDirTopic",
                    Field("name", String),
                    Field("partitions", Array(Int32)),
                ),
            ),
        ),
    ),
    api_key=34,
    versions="0-2",
    flexible="2+",
)

AlterReplicaLogDirsResponse = Message(
    "AlterReplicaLogDirsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "results",
        Array(
            "AlterReplicaLogDirTopicResult",
            Field("topic_name", String),
            Field(
                "partitions",
                Array(
                    "AlterReplicaLogDirPartitionResult",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                ),
            ),
        ),
    ),
    api_key=34,
    versions="0-2",
    flexible="2+",
)

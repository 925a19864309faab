"""CreateTopics: make topics."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, String, Uuid

CreateTopicsRequest = Message(
    "CreateTopicsRequest",
    Field(
        "topics",
        Array(
            "CreatableTopic",
            Field("name", String),
            Field("num_partitions", Int32),
            Field("replication_factor", Int16),
            Field(
                "assignments",
                Array(
                    "CreatableReplicaAssignment",
                    Field("partition_index", Int32),
                    Field("broker_ids", Array(Int32)),
                ),
            ),
            Field(
                "configs",
                Array(
                    "CreatableTopicConfig",
                    Field("name", String),
                    Field("value", String, nullable="0+"),
                ),
            ),
        ),
    ),
    Field("timeout_ms", Int32, default=60000),
    Field("validate_only", Bool, "1+"),
    api_key=19,
    versions="0-7",
    flexible="5+",
)

CreateTopicsResponse = Message(
    "CreateTopicsResponse",
    Field("throttle_time_ms", Int32, "2+", ignorable=True),
    Field(
        "topics",
        Array(
            "CreatableTopicResult",
            Field("name", String),
            Field("topic_id", Uuid, "7+", ignorable=True),
            Field("error_code", Int16),
            Field("error_message", String, "1+", nullable="0+", default=None, ignorable=True),
            Field("topic_config_error_code", Int16, "5+", tag=0, ignorable=True),
            Field("num_partitions", Int32, "5+", default=-1, ignorable=True),
            Field("replication_factor", Int16, "5+", default=-1, ignorable=True),
            Field(
                "configs",
                Array(
                    "CreatableTopicConfigs",
                    Field("name", String, "5+"),
                    Field("value", String, "5+", nullable="5+"),
                    Field("read_only", Bool, "5+"),
                    Field("config_source", Int8, "5+", default=-1, ignorable=True),
                    Field("is_sensitive", Bool, "5+"),
                ),
                "5+",
                nullable="5+",
                ignorable=True,
            ),
        ),
    ),
    api_key=19,
    versions="0-7",
    flexible="5+",
)

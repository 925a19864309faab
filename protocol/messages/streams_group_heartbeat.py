"""StreamsGroupHeartbeat: membership in a streams group (KIP-1071)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, Int64, String, Struct, Uint16

KEY_VALUE = Struct("KeyValue", Field("key", String), Field("value", String))

TOPIC_INFO = Struct(
    "TopicInfo",
    Field("name", String),
    Field("partitions", Int32),
    Field("replication_factor", Int16),
    Field("topic_configs", Array(KEY_VALUE)),
)

TASK_IDS = Struct("TaskIds", Field("subtopology_id", String), Field("partitions", Array(Int32)))

TASK_OFFSET = Struct(
    "TaskOffset", Field("subtopology_id", String), Field("partition", Int32), Field("offset", Int64)
)

RESPONSE_TASK_IDS = Struct(
    "TaskIds", Field("subtopology_id", String), Field("partitions", Array(Int32))
)

TOPIC_PARTITION = Struct(
    "TopicPartition", Field("topic", String), Field("partitions", Array(Int32))
)

StreamsGroupHeartbeatRequest = Message(
    "StreamsGroupHeartbeatRequest",
    Field("group_id", String),
    Field("member_id", String),
    Field("member_epoch", Int32),
    Field("endpoint_information_epoch", Int32),
    Field("instance_id", String, nullable="0+", default=None),
    Field("rack_id", String, nullable="0+", default=None),
    Field("rebalance_timeout_ms", Int32, default=-1),
    Field(
        "topology",
        Struct(
            "Topology",
            Field("epoch", Int32),
            Field(
                "subtopologies",
                Array(
                    "Subtopology",
                    Field("subtopology_id", String),
                    Field("source_topics", Array(String)),
                    Field("source_topic_regex", Array(String)),
                    Field("state_changelog_topics", Array(TOPIC_INFO)),
                    Field("repartition_sink_topics", Array(String)),
                    Field("repartition_source_topics", Array(TOPIC_INFO)),
                    Field(
                        "copartition_groups",
                        Array(
                            "CopartitionGroup",
                            Field("source_topics", Array(Int16)),
                            Field("source_topic_regex", Array(Int16)),
                            Field("repartition_source_topics", Array(Int16)),
                        ),
                    ),
                ),
            ),
        ),
        nullable="0+",
        default=None,
    ),
    Field("active_tasks", Array(TASK_IDS), nullable="0+", default=None),
    Field("standby_tasks", Array(TASK_IDS), nullable="0+", default=None),
    Field("warmup_tasks", Array(TASK_IDS), nullable="0+", default=None),
    Field("process_id", String, nullable="0+", default=None),
    Field(
        "user_endpoint",
        Struct("Endpoint", Field("host", String), Field("port", Uint16)),
        nullable="0+",
        default=None,
    ),
    Field("client_tags", Array(KEY_VALUE), nullable="0+", default=None),
    Field("task_offsets", Array(TASK_OFFSET), nullable="0+", default=None),
    Field("task_end_offsets", Array(TASK_OFFSET), nullable="0+", default=None),
    Field("shutdown_application", Bool),
    api_key=88,
    versions="0",
    flexible="0+",
)

StreamsGroupHeartbeatResponse = Message(
    "StreamsGroupHeartbeatResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field("member_id", String),
    Field("member_epoch", Int32),
    Field("heartbeat_interval_ms", Int32),
    Field("acceptable_recovery_lag", Int32),
    Field("task_offset_interval_ms", Int32),
    Field(
        "status",
        Array("Status", Field("status_code", Int8), Field("status_detail", String)),
        nullable="0+",
    ),
    Field("active_tasks", Array(RESPONSE_TASK_IDS), nullable="0+", default=None),
    Field("standby_tasks", Array(RESPONSE_TASK_IDS), nullable="0+", default=None),
    Field("warmup_tasks", Array(RESPONSE_TASK_IDS), nullable="0+", default=None),
    Field("endpoint_information_epoch", Int32),
    Field(
        "partitions_by_user_endpoint",
        Array(
            "EndpointToPartitions",
            Field(
                "user_endpoint", Struct("Endpoint", Field("host", String), Field("port", Uint16))
            ),
            Field("active_partitions", Array(TOPIC_PARTITION)),
            Field("standby_partitions", Array(TOPIC_PARTITION)),
        ),
        nullable="0+",
        default=None,
    ),
    api_key=88,
    versions="0",
    flexible="0+",
)

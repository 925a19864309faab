"""StreamsGroupDescribe: streams groups (KIP-1071)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, String, Struct, Uint16

KEY_VALUE = Struct("KeyValue", Field("key", String), Field("value", String))

TOPIC_INFO = Struct(
    "TopicInfo",
    Field("name", String),
    Field("partitions", Int32),
    Field("replication_factor", Int16),
    Field("topic_configs", Array(KEY_VALUE)),
)

TASK_OFFSET = Struct(
    "TaskOffset", Field("subtopology_id", String), Field("partition", Int32), Field("offset", Int64)
)

TASK_IDS = Struct("TaskIds", Field("subtopology_id", String), Field("partitions", Array(Int32)))

ASSIGNMENT = Struct(
    "Assignment",
    Field("active_tasks", Array(TASK_IDS)),
    Field("standby_tasks", Array(TASK_IDS)),
    Field("warmup_tasks", Array(TASK_IDS)),
)

StreamsGroupDescribeRequest = Message(
    "StreamsGroupDescribeRequest",
    Field("group_ids", Array(String)),
    Field("include_authorized_operations", Bool),
    api_key=89,
    versions="0",
    flexible="0+",
)

StreamsGroupDescribeResponse = Message(
    "StreamsGroupDescribeResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "groups",
        Array(
            "DescribedGroup",
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
            Field("group_id", String),
            Field("group_state", String),
            Field("group_epoch", Int32),
            Field("assignment_epoch", Int32),
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
                            Field("repartition_sink_topics", Array(String)),
                            Field("state_changelog_topics", Array(TOPIC_INFO)),
                            Field("repartition_source_topics", Array(TOPIC_INFO)),
                        ),
                        nullable="0+",
                        default=None,
                    ),
                ),
                nullable="0+",
                default=None,
            ),
            Field(
                "members",
                Array(
                    "Member",
                    Field("member_id", String),
                    Field("member_epoch", Int32),
                    Field("instance_id", String, nullable="0+", default=None),
                    Field("rack_id", String, nullable="0+", default=None),
                    Field("client_id", String),
                    Field("client_host", String),
                    Field("topology_epoch", Int32),
                    Field("process_id", String),
                    Field(
                        "user_endpoint",
                        Struct("Endpoint", Field("host", String), Field("port", Uint16)),
                        nullable="0+",
                        default=None,
                    ),
                    Field("client_tags", Array(KEY_VALUE)),
                    Field("task_offsets", Array(TASK_OFFSET)),
                    Field("task_end_offsets", Array(TASK_OFFSET)),
                    Field("assignment", ASSIGNMENT),
                    Field("target_assignment", ASSIGNMENT),
                    Field("is_classic", Bool),
                ),
            ),
            Field("authorized_operations", Int32, default=-0x80000000),
        ),
    ),
    api_key=89,
    versions="0",
    flexible="0+",
)

"""What `__consumer_offsets` keeps of streams groups (KIP-1071)."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, Int64, String, Struct, Uint16

TASK_IDS = Struct("TaskIds", Field("subtopology_id", String), Field("partitions", Array(Int32)))

TASK_IDS_WITH_EPOCHS = Struct(
    "TaskIds",
    Field("subtopology_id", String),
    Field("partitions", Array(Int32)),
    Field("assignment_epochs", Array(Int32), nullable="0+", tag=0),
)

TOPIC_INFO = Struct(
    "TopicInfo",
    Field("name", String),
    Field("partitions", Int32),
    Field("replication_factor", Int16),
    Field("topic_configs", Array("TopicConfig", Field("key", String), Field("value", String))),
)

StreamsGroupMetadataKey = Message(
    "StreamsGroupMetadataKey", Field("group_id", String), versions="0"
)

StreamsGroupMetadataValue = Message(
    "StreamsGroupMetadataValue",
    Field("epoch", Int32),
    Field("metadata_hash", Int64),
    Field("validated_topology_epoch", Int32, default=-1, tag=0),
    Field(
        "last_assignment_configs",
        Array("LastAssignmentConfig", Field("key", String), Field("value", String)),
        nullable="0+",
        tag=1,
    ),
    versions="0",
    flexible="0+",
)

StreamsGroupMemberMetadataKey = Message(
    "StreamsGroupMemberMetadataKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

StreamsGroupMemberMetadataValue = Message(
    "StreamsGroupMemberMetadataValue",
    Field("instance_id", String, nullable="0+"),
    Field("rack_id", String, nullable="0+"),
    Field("client_id", String),
    Field("client_host", String),
    Field("rebalance_timeout_ms", Int32, default=-1),
    Field("topology_epoch", Int32),
    Field("process_id", String),
    Field(
        "user_endpoint",
        Struct("Endpoint", Field("host", String), Field("port", Uint16)),
        nullable="0+",
        default=None,
    ),
    Field("client_tags", Array("KeyValue", Field("key", String), Field("value", String))),
    versions="0",
    flexible="0+",
)

StreamsGroupTargetAssignmentMetadataKey = Message(
    "StreamsGroupTargetAssignmentMetadataKey", Field("group_id", String), versions="0"
)

StreamsGroupTargetAssignmentMetadataValue = Message(
    "StreamsGroupTargetAssignmentMetadataValue",
    Field("assignment_epoch", Int32),
    Field("assignment_timestamp", Int64, tag=0),
    versions="0",
    flexible="0+",
)

StreamsGroupTargetAssignmentMemberKey = Message(
    "StreamsGroupTargetAssignmentMemberKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

StreamsGroupTargetAssignmentMemberValue = Message(
    "StreamsGroupTargetAssignmentMemberValue",
    Field("active_tasks", Array(TASK_IDS)),
    Field("standby_tasks", Array(TASK_IDS)),
    Field("warmup_tasks", Array(TASK_IDS)),
    versions="0",
    flexible="0+",
)

StreamsGroupCurrentMemberAssignmentKey = Message(
    "StreamsGroupCurrentMemberAssignmentKey",
    Field("group_id", String),
    Field("member_id", String),
    versions="0",
)

StreamsGroupCurrentMemberAssignmentValue = Message(
    "StreamsGroupCurrentMemberAssignmentValue",
    Field("member_epoch", Int32),
    Field("previous_member_epoch", Int32),
    Field("state", Int8),
    Field("active_tasks", Array(TASK_IDS_WITH_EPOCHS)),
    Field("standby_tasks", Array(TASK_IDS_WITH_EPOCHS)),
    Field("warmup_tasks", Array(TASK_IDS_WITH_EPOCHS)),
    Field(
        "active_tasks_pending_revocation",
        Array(TASK_IDS_WITH_EPOCHS),
    ),
    Field(
        "standby_tasks_pending_revocation",
        Array(TASK_IDS_WITH_EPOCHS),
    ),
    Field(
        "warmup_tasks_pending_revocation",
        Array(TASK_IDS_WITH_EPOCHS),
    ),
    versions="0",
    flexible="0+",
)

StreamsGroupTopologyKey = Message(
    "StreamsGroupTopologyKey", Field("group_id", String), versions="0"
)

StreamsGroupTopologyValue = Message(
    "StreamsGroupTopologyValue",
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
    versions="0",
    flexible="0+",
)

"""LeaderAndIsr: the controller tells a broker what it leads and follows (until Kafka 3.9)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, Int64, String, Struct, Uuid

LEADER_AND_ISR_PARTITION_STATE = Struct(
    "LeaderAndIsrPartitionState",
    Field("topic_name", String, "0-1", ignorable=True),
    Field("partition_index", Int32),
    Field("controller_epoch", Int32),
    Field("leader", Int32),
    Field("leader_epoch", Int32),
    Field("isr", Array(Int32)),
    Field("partition_epoch", Int32),
    Field("replicas", Array(Int32)),
    Field("adding_replicas", Array(Int32), "3+", ignorable=True),
    Field("removing_replicas", Array(Int32), "3+", ignorable=True),
    Field("is_new", Bool, "1+", ignorable=True),
    Field("leader_recovery_state", Int8, "6+"),
)

LEADER_AND_ISR_PARTITION_ERROR = Struct(
    "LeaderAndIsrPartitionError",
    Field("topic_name", String, "0-4", ignorable=True),
    Field("partition_index", Int32),
    Field("error_code", Int16),
)

LeaderAndIsrRequest = Message(
    "LeaderAndIsrRequest",
    Field("controller_id", Int32),
    Field("is_kraft_controller", Bool, "7+"),
    Field("controller_epoch", Int32),
    Field("broker_epoch", Int64, "2+", default=-1, ignorable=True),
    Field("type", Int8, "5+"),
    Field("ungrouped_partition_states", Array(LEADER_AND_ISR_PARTITION_STATE), "0-1"),
    Field(
        "topic_states",
        Array(
            "LeaderAndIsrTopicState",
            Field("topic_name", String, "2+"),
            Field("topic_id", Uuid, "5+", ignorable=True),
            Field("partition_states", Array(LEADER_AND_ISR_PARTITION_STATE), "2+"),
        ),
        "2+",
    ),
    Field(
        "live_leaders",
        Array(
            "LeaderAndIsrLiveLeader",
            Field("broker_id", Int32),
            Field("host_name", String),
            Field("port", Int32),
        ),
    ),
    api_key=4,
    versions="0-7",
    flexible="4+",
)

LeaderAndIsrResponse = Message(
    "LeaderAndIsrResponse",
    Field("error_code", Int16),
    Field("partition_errors", Array(LEADER_AND_ISR_PARTITION_ERROR), "0-4"),
    Field(
        "topics",
        Array(
            "LeaderAndIsrTopicError",
            Field("topic_id", Uuid, "5+"),
            Field("partition_errors", Array(LEADER_AND_ISR_PARTITION_ERROR), "5+"),
        ),
        "5+",
    ),
    api_key=4,
    versions="0-7",
    flexible="4+",
)

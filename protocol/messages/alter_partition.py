"""AlterPartition: a leader asks the controller for another ISR."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, Int64, String, Uuid

AlterPartitionRequest = Message(
    "AlterPartitionRequest",
    Field("broker_id", Int32),
    Field("broker_epoch", Int64, default=-1),
    Field(
        "topics",
        Array(
            "TopicData",
            Field("topic_name", String, "0-1", ignorable=True),
            Field("topic_id", Uuid, "2+", ignorable=True),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition_index", Int32),
                    Field("leader_epoch", Int32),
                    Field("new_isr", Array(Int32), "0-2"),
                    Field(
                        "new_isr_with_epochs",
                        Array(
                            "BrokerState",
                            Field("broker_id", Int32, "3+"),
                            Field("broker_epoch", Int64, "3+", default=-1),
                        ),
                        "3+",
                    ),
                    Field("leader_recovery_state", Int8, "1+"),
                    Field("partition_epoch", Int32),
                ),
            ),
        ),
    ),
    api_key=56,
    versions="0-3",
    flexible="0+",
)

AlterPartitionResponse = Message(
    "AlterPartitionResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field(
        "topics",
        Array(
            "TopicData",
            Field("topic_name", String, "0-1", ignorable=True),
            Field("topic_id", Uuid, "2+", ignorable=True),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field("leader_id", Int32),
                    Field("leader_epoch", Int32),
                    Field("isr", Array(Int32)),
                    Field("leader_recovery_state", Int8, "1+", ignorable=True),
                    Field("partition_epoch", Int32),
                ),
            ),
        ),
    ),
    api_key=56,
    versions="0-3",
    flexible="0+",
)

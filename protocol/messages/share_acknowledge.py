"""ShareAcknowledge: accept, release or reject acquired records (KIP-932)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, Int64, String, Struct, Uuid

ShareAcknowledgeRequest = Message(
    "ShareAcknowledgeRequest",
    Field("group_id", String, nullable="0+", default=None),
    Field("member_id", String, nullable="0+"),
    Field("share_session_epoch", Int32),
    Field("is_renew_ack", Bool, "2+"),
    Field(
        "topics",
        Array(
            "AcknowledgeTopic",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "AcknowledgePartition",
                    Field("partition_index", Int32),
                    Field(
                        "acknowledgement_batches",
                        Array(
                            "AcknowledgementBatch",
                            Field("first_offset", Int64),
                            Field("last_offset", Int64),
                            Field("acknowledge_types", Array(Int8)),
                        ),
                    ),
                ),
            ),
        ),
    ),
    api_key=79,
    versions="1-2",
    flexible="0+",
)

ShareAcknowledgeResponse = Message(
    "ShareAcknowledgeResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field("acquisition_lock_timeout_ms", Int32, "2+", ignorable=True),
    Field(
        "responses",
        Array(
            "ShareAcknowledgeTopicResponse",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                    Field(
                        "current_leader",
                        Struct(
                            "LeaderIdAndEpoch",
                            Field("leader_id", Int32),
                            Field("leader_epoch", Int32),
                        ),
                    ),
                ),
            ),
        ),
    ),
    Field(
        "node_endpoints",
        Array(
            "NodeEndpoint",
            Field("node_id", Int32),
            Field("host", String),
            Field("port", Int32),
            Field("rack", String, nullable="0+", default=None),
        ),
    ),
    api_key=79,
    versions="1-2",
    flexible="0+",
)

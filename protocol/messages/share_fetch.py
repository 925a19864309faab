"""ShareFetch: acquire records for a share group (KIP-932)."""

from ..codec.message import Message
from ..codec.types import (
    Array,
    Bool,
    Field,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Struct,
    Uuid,
)

ShareFetchRequest = Message(
    "ShareFetchRequest",
    Field("group_id", String, nullable="0+", default=None),
    Field("member_id", String, nullable="0+"),
    Field("share_session_epoch", Int32),
    Field("max_wait_ms", Int32),
    Field("min_bytes", Int32),
    Field("max_bytes", Int32, default=0x7FFFFFFF),
    Field("max_records", Int32),
    Field("batch_size", Int32),
    Field("share_acquire_mode", Int8, "2+", ignorable=True),
    Field("is_renew_ack", Bool, "2+"),
    Field(
        "topics",
        Array(
            "FetchTopic",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "FetchPartition",
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
    Field(
        "forgotten_topics_data",
        Array("ForgottenTopic", Field("topic_id", Uuid), Field("partitions", Array(Int32))),
    ),
    api_key=78,
    versions="1-2",
    flexible="0+",
)

ShareFetchResponse = Message(
    "ShareFetchResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field("acquisition_lock_timeout_ms", Int32),
    Field(
        "responses",
        Array(
            "ShareFetchableTopicResponse",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "PartitionData",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                    Field("acknowledge_error_code", Int16),
                    Field("acknowledge_error_message", String, nullable="0+", default=None),
                    Field(
                        "current_leader",
                        Struct(
                            "LeaderIdAndEpoch",
                            Field("leader_id", Int32),
                            Field("leader_epoch", Int32),
                        ),
                    ),
                    Field("records", Records),
                    Field(
                        "acquired_records",
                        Array(
                            "AcquiredRecords",
                            Field("first_offset", Int64),
                            Field("last_offset", Int64),
                            Field("delivery_count", Int16),
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
    api_key=78,
    versions="1-2",
    flexible="0+",
)

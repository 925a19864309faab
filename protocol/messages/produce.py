"""Produce: append record batches to partitions."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, Records, String, Struct, Uuid

ProduceRequest = Message(
    "ProduceRequest",
    Field("transactional_id", String, "3+", nullable="3+", default=None),
    Field("acks", Int16),
    Field("timeout_ms", Int32),
    Field(
        "topic_data",
        Array(
            "TopicProduceData",
            Field("name", String, "0-12", ignorable=True),
            Field("topic_id", Uuid, "13+", ignorable=True),
            Field(
                "partition_data",
                Array(
                    "PartitionProduceData",
                    Field("index", Int32),
                    Field("records", Records, nullable="0+"),
                ),
            ),
        ),
    ),
    api_key=0,
    versions="0-13",
    flexible="9+",
)

ProduceResponse = Message(
    "ProduceResponse",
    Field(
        "responses",
        Array(
            "TopicProduceResponse",
            Field("name", String, "0-12", ignorable=True),
            Field("topic_id", Uuid, "13+", ignorable=True),
            Field(
                "partition_responses",
                Array(
                    "PartitionProduceResponse",
                    Field("index", Int32),
                    Field("error_code", Int16),
                    Field("base_offset", Int64),
                    Field("log_append_time_ms", Int64, "2+", default=-1, ignorable=True),
                    Field("log_start_offset", Int64, "5+", default=-1, ignorable=True),
                    Field(
                        "record_errors",
                        Array(
                            "BatchIndexAndErrorMessage",
                            Field("batch_index", Int32, "8+"),
                            Field(
                                "batch_index_error_message",
                                String,
                                "8+",
                                nullable="8+",
                                default=None,
                            ),
                        ),
                        "8+",
                        ignorable=True,
                    ),
                    Field(
                        "error_message", String, "8+", nullable="8+", default=None, ignorable=True
                    ),
                    Field(
                        "current_leader",
                        Struct(
                            "LeaderIdAndEpoch",
                            Field("leader_id", Int32, "10+", default=-1),
                            Field("leader_epoch", Int32, "10+", default=-1),
                        ),
                        "10+",
                        tag=0,
                    ),
                ),
            ),
        ),
    ),
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field(
        "node_endpoints",
        Array(
            "NodeEndpoint",
            Field("node_id", Int32, "10+"),
            Field("host", String, "10+"),
            Field("port", Int32, "10+"),
            Field("rack", String, "10+", nullable="10+", default=None),
        ),
        "10+",
        tag=0,
    ),
    api_key=0,
    versions="0-13",
    flexible="9+",
)

"""DescribeProducers: the producers active in partitions."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String

DescribeProducersRequest = Message(
    "DescribeProducersRequest",
    Field(
        "topics",
        Array("TopicRequest", Field("name", String), Field("partition_indexes", Array(Int32))),
    ),
    api_key=61,
    versions="0",
    flexible="0+",
)

DescribeProducersResponse = Message(
    "DescribeProducersResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "topics",
        Array(
            "TopicResponse",
            Field("name", String),
            Field(
                "partitions",
                Array(
                    "PartitionResponse",
                    Field("partition_index", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                    Field(
                        "active_producers",
                        Array(
                            "ProducerState",
                            Field("producer_id", Int64),
                            Field("producer_epoch", Int32),
                            Field("last_sequence", Int32, default=-1),
                            Field("last_timestamp", Int64, default=-1),
                            Field("coordinator_epoch", Int32),
                            Field("current_txn_start_offset", Int64, default=-1),
                        ),
                    ),
                ),
            ),
        ),
    ),
    api_key=61,
    versions="0",
    flexible="0+",
)

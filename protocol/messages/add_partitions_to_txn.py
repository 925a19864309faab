"""AddPartitionsToTxn: partitions join a transaction, or are checked to be in it."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, String, Struct

ADD_PARTITIONS_TO_TXN_TOPIC = Struct(
    "AddPartitionsToTxnTopic", Field("name", String), Field("partitions", Array(Int32))
)

ADD_PARTITIONS_TO_TXN_PARTITION_RESULT = Struct(
    "AddPartitionsToTxnPartitionResult",
    Field("partition_index", Int32),
    Field("partition_error_code", Int16),
)

ADD_PARTITIONS_TO_TXN_TOPIC_RESULT = Struct(
    "AddPartitionsToTxnTopicResult",
    Field("name", String),
    Field("results_by_partition", Array(ADD_PARTITIONS_TO_TXN_PARTITION_RESULT)),
)

AddPartitionsToTxnRequest = Message(
    "AddPartitionsToTxnRequest",
    Field(
        "transactions",
        Array(
            "AddPartitionsToTxnTransaction",
            Field("transactional_id", String, "4+"),
            Field("producer_id", Int64, "4+"),
            Field("producer_epoch", Int16, "4+"),
            Field("verify_only", Bool, "4+"),
            Field("topics", Array(ADD_PARTITIONS_TO_TXN_TOPIC), "4+"),
        ),
        "4+",
    ),
    Field("v3_and_below_transactional_id", String, "0-3"),
    Field("v3_and_below_producer_id", Int64, "0-3"),
    Field("v3_and_below_producer_epoch", Int16, "0-3"),
    Field("v3_and_below_topics", Array(ADD_PARTITIONS_TO_TXN_TOPIC), "0-3"),
    api_key=24,
    versions="0-5",
    flexible="3+",
)

AddPartitionsToTxnResponse = Message(
    "AddPartitionsToTxnResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16, "4+", ignorable=True),
    Field(
        "results_by_transaction",
        Array(
            "AddPartitionsToTxnResult",
            Field("transactional_id", String, "4+"),
            Field("topic_results", Array(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT), "4+"),
        ),
        "4+",
    ),
    Field("results_by_topic_v3_and_below", Array(ADD_PARTITIONS_TO_TXN_TOPIC_RESULT), "0-3"),
    api_key=24,
    versions="0-5",
    flexible="3+",
)

"""DescribeTransactions: the state of transactions."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String

DescribeTransactionsRequest = Message(
    "DescribeTransactionsRequest",
    Field("transactional_ids", Array(String)),
    api_key=65,
    versions="0",
    flexible="0+",
)

DescribeTransactionsResponse = Message(
    "DescribeTransactionsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "transaction_states",
        Array(
            "TransactionState",
            Field("error_code", Int16),
            Field("transactional_id", String),
            Field("transaction_state", String),
            Field("transaction_timeout_ms", Int32),
            Field("transaction_start_time_ms", Int64),
            Field("producer_id", Int64),
            Field("producer_epoch", Int16),
            Field(
                "topics",
                Array("TopicData", Field("topic", String), Field("partitions", Array(Int32))),
            ),
        ),
    ),
    api_key=65,
    versions="0",
    flexible="0+",
)

"""ListTransactions: the transactions that a broker coordinates."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String

ListTransactionsRequest = Message(
    "ListTransactionsRequest",
    Field("state_filters", Array(String)),
    Field("producer_id_filters", Array(Int64)),
    Field("duration_filter", Int64, "1+", default=-1),
    Field("transactional_id_pattern", String, "2+", nullable="2+", default=None),
    api_key=66,
    versions="0-2",
    flexible="0+",
)

ListTransactionsResponse = Message(
    "ListTransactionsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("unknown_state_filters", Array(String)),
    Field(
        "transaction_states",
        Array(
            "TransactionState",
            Field("transactional_id", String),
            Field("producer_id", Int64),
            Field("transaction_state", String),
        ),
    ),
    api_key=66,
    versions="0-2",
    flexible="0+",
)

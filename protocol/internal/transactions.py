"""What `__transaction_state` keeps of transactions."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, Int64, String

TransactionLogKey = Message("TransactionLogKey", Field("transactional_id", String), versions="0")

TransactionLogValue = Message(
    "TransactionLogValue",
    Field("producer_id", Int64),
    Field("previous_producer_id", Int64, "1+", default=-1, tag=0),
    Field("next_producer_id", Int64, "1+", default=-1, tag=1),
    Field("producer_epoch", Int16),
    Field("next_producer_epoch", Int16, "1+", default=-1, tag=3),
    Field("transaction_timeout_ms", Int32),
    Field("transaction_status", Int8),
    Field(
        "transaction_partitions",
        Array("PartitionsSchema", Field("topic", String), Field("partition_ids", Array(Int32))),
        nullable="0+",
    ),
    Field("transaction_last_update_timestamp_ms", Int64),
    Field("transaction_start_timestamp_ms", Int64),
    Field("client_transaction_version", Int16, "1+", tag=2),
    versions="0-1",
    flexible="1+",
)

"""InitProducerId: a producer id and epoch for idempotence and transactions."""

from ..codec.message import Message
from ..codec.types import Bool, Field, Int16, Int32, Int64, String

InitProducerIdRequest = Message(
    "InitProducerIdRequest",
    Field("transactional_id", String, nullable="0+"),
    Field("transaction_timeout_ms", Int32),
    Field("producer_id", Int64, "3+", default=-1),
    Field("producer_epoch", Int16, "3+", default=-1),
    Field("enable2_pc", Bool, "6+"),
    Field("keep_prepared_txn", Bool, "6+"),
    api_key=22,
    versions="0-6",
    flexible="2+",
)

InitProducerIdResponse = Message(
    "InitProducerIdResponse",
    Field("throttle_time_ms", Int32, ignorable=True),
    Field("error_code", Int16),
    Field("producer_id", Int64, default=-1),
    Field("producer_epoch", Int16),
    Field("ongoing_txn_producer_id", Int64, "6+", default=-1),
    Field("ongoing_txn_producer_epoch", Int16, "6+", default=-1),
    api_key=22,
    versions="0-6",
    flexible="2+",
)

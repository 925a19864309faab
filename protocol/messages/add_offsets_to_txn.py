"""AddOffsetsToTxn: a group's offsets join a transaction."""

from ..codec.message import Message
from ..codec.types import Field, Int16, Int32, Int64, String

AddOffsetsToTxnRequest = Message(
    "AddOffsetsToTxnRequest",
    Field("transactional_id", String),
    Field("producer_id", Int64),
    Field("producer_epoch", Int16),
    Field("group_id", String),
    api_key=25,
    versions="0-4",
    flexible="3+",
)

AddOffsetsToTxnResponse = Message(
    "AddOffsetsToTxnResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    api_key=25,
    versions="0-4",
    flexible="3+",
)

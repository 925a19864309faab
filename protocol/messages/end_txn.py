"""EndTxn: commit or abort a transaction."""

from ..codec.message import Message
from ..codec.types import Bool, Field, Int16, Int32, Int64, String

EndTxnRequest = Message(
    "EndTxnRequest",
    Field("transactional_id", String),
    Field("producer_id", Int64),
    Field("producer_epoch", Int16),
    Field("committed", Bool),
    api_key=26,
    versions="0-5",
    flexible="3+",
)

EndTxnResponse = Message(
    "EndTxnResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("producer_id", Int64, "5+", default=-1, ignorable=True),
    Field("producer_epoch", Int16, "5+", default=-1, ignorable=True),
    api_key=26,
    versions="0-5",
    flexible="3+",
)

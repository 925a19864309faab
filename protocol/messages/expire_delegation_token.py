"""ExpireDelegationToken: set when a token ends."""

from ..codec.message import Message
from ..codec.types import Bytes, Field, Int16, Int32, Int64

ExpireDelegationTokenRequest = Message(
    "ExpireDelegationTokenRequest",
    Field("hmac", Bytes),
    Field("expiry_time_period_ms", Int64),
    api_key=40,
    versions="0-2",
    flexible="2+",
)

ExpireDelegationTokenResponse = Message(
    "ExpireDelegationTokenResponse",
    Field("error_code", Int16),
    Field("expiry_timestamp_ms", Int64),
    Field("throttle_time_ms", Int32),
    api_key=40,
    versions="0-2",
    flexible="2+",
)

"""RenewDelegationToken: let a token live longer."""

from ..codec.message import Message
from ..codec.types import Bytes, Field, Int16, Int32, Int64

RenewDelegationTokenRequest = Message(
    "RenewDelegationTokenRequest",
    Field("hmac", Bytes),
    Field("renew_period_ms", Int64),
    api_key=39,
    versions="0-2",
    flexible="2+",
)

RenewDelegationTokenResponse = Message(
    "RenewDelegationTokenResponse",
    Field("error_code", Int16),
    Field("expiry_timestamp_ms", Int64),
    Field("throttle_time_ms", Int32),
    api_key=39,
    versions="0-2",
    flexible="2+",
)

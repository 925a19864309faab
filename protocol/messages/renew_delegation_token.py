"""RenewDelegationToken: let a token live longer."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import bytes_, int16, int32, int64


class RenewDelegationTokenRequest(Message, api_key=39, versions="0-2", flexible="2+"):
    hmac: bytes = bytes_()
    renew_period_ms: int = int64()


class RenewDelegationTokenResponse(Message, api_key=39, versions="0-2", flexible="2+"):
    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32()

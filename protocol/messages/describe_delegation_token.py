"""DescribeDelegationToken: the tokens of owners."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bytes_, int16, int32, int64, string


class DescribeDelegationTokenRequest(Message, api_key=41, versions="0-3", flexible="2+"):
    owners: list[DescribeDelegationTokenOwner] | None = array(nullable="0+")

    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = string()
        principal_name: str = string()


class DescribeDelegationTokenResponse(Message, api_key=41, versions="0-3", flexible="2+"):
    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array()
    throttle_time_ms: int = int32()

    class DescribedDelegationToken(Struct):
        principal_type: str = string()
        principal_name: str = string()
        token_requester_principal_type: str = string("3+")
        token_requester_principal_name: str = string("3+")
        issue_timestamp: int = int64()
        expiry_timestamp: int = int64()
        max_timestamp: int = int64()
        token_id: str = string()
        hmac: bytes = bytes_()
        renewers: list[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = array()

    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str = string()
        principal_name: str = string()

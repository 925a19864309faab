"""DescribeUserScramCredentials: which SCRAM credentials users have."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int8, int16, int32, string


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions="0", flexible="0+"):
    users: list[UserName] | None = array(nullable="0+")

    class UserName(Struct):
        name: str = string()


class DescribeUserScramCredentialsResponse(Message, api_key=50, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    results: list[DescribeUserScramCredentialsResult] = array()

    class DescribeUserScramCredentialsResult(Struct):
        user: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        credential_infos: list[DescribeUserScramCredentialsResponse.CredentialInfo] = array()

    class CredentialInfo(Struct):
        mechanism: int = int8()
        iterations: int = int32()

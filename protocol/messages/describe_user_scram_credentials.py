"""DescribeUserScramCredentials: which SCRAM credentials users have."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, String

DescribeUserScramCredentialsRequest = Message(
    "DescribeUserScramCredentialsRequest",
    Field("users", Array("UserName", Field("name", String)), nullable="0+"),
    api_key=50,
    versions="0",
    flexible="0+",
)

DescribeUserScramCredentialsResponse = Message(
    "DescribeUserScramCredentialsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field(
        "results",
        Array(
            "DescribeUserScramCredentialsResult",
            Field("user", String),
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
            Field(
                "credential_infos",
                Array("CredentialInfo", Field("mechanism", Int8), Field("iterations", Int32)),
            ),
        ),
    ),
    api_key=50,
    versions="0",
    flexible="0+",
)

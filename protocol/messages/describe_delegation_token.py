"""DescribeDelegationToken: the tokens of owners."""

from ..codec.message import Message
from ..codec.types import Array, Bytes, Field, Int16, Int32, Int64, String

DescribeDelegationTokenRequest = Message(
    "DescribeDelegationTokenRequest",
    Field(
        "owners",
        Array(
            "DescribeDelegationTokenOwner",
            Field("principal_type", String),
            Field("principal_name", String),
        ),
        nullable="0+",
    ),
    api_key=41,
    versions="0-3",
    flexible="2+",
)

DescribeDelegationTokenResponse = Message(
    "DescribeDelegationTokenResponse",
    Field("error_code", Int16),
    Field(
        "tokens",
        Array(
            "DescribedDelegationToken",
            Field("principal_type", String),
            Field("principal_name", String),
            Field("token_requester_principal_type", String, "3+"),
            Field("token_requester_principal_name", String, "3+"),
            Field("issue_timestamp", Int64),
            Field("expiry_timestamp", Int64),
            Field("max_timestamp", Int64),
            Field("token_id", String),
            Field("hmac", Bytes),
            Field(
                "renewers",
                Array(
                    "DescribedDelegationTokenRenewer",
                    Field("principal_type", String),
                    Field("principal_name", String),
                ),
            ),
        ),
    ),
    Field("throttle_time_ms", Int32),
    api_key=41,
    versions="0-3",
    flexible="2+",
)

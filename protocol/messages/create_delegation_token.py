"""CreateDelegationToken: a token to authenticate with in one's stead."""

from ..codec.message import Message
from ..codec.types import Array, Bytes, Field, Int16, Int32, Int64, String

CreateDelegationTokenRequest = Message(
    "CreateDelegationTokenRequest",
    Field("owner_principal_type", String, "3+", nullable="3+"),
    Field("owner_principal_name", String, "3+", nullable="3+"),
    Field(
        "renewers",
        Array(
            "CreatableRenewers", Field("principal_type", String), Field("principal_name", String)
        ),
    ),
    Field("max_lifetime_ms", Int64),
    api_key=38,
    versions="0-3",
    flexible="2+",
)

CreateDelegationTokenResponse = Message(
    "CreateDelegationTokenResponse",
    Field("error_code", Int16),
    Field("principal_type", String),
    Field("principal_name", String),
    Field("token_requester_principal_type", String, "3+"),
    Field("token_requester_principal_name", String, "3+"),
    Field("issue_timestamp_ms", Int64),
    Field("expiry_timestamp_ms", Int64),
    Field("max_timestamp_ms", Int64),
    Field("token_id", String),
    Field("hmac", Bytes),
    Field("throttle_time_ms", Int32),
    api_key=38,
    versions="0-3",
    flexible="2+",
)

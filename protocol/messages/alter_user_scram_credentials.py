"""AlterUserScramCredentials: set or remove SCRAM credentials."""

from ..codec.message import Message
from ..codec.types import Array, Bytes, Field, Int8, Int16, Int32, String

AlterUserScramCredentialsRequest = Message(
    "AlterUserScramCredentialsRequest",
    Field(
        "deletions",
        Array("ScramCredentialDeletion", Field("name", String), Field("mechanism", Int8)),
    ),
    Field(
        "upsertions",
        Array(
            "ScramCredentialUpsertion",
            Field("name", String),
            Field("mechanism", Int8),
            Field("iterations", Int32),
            Field("salt", Bytes),
            Field("salted_password", Bytes),
        ),
    ),
    api_key=51,
    versions="0",
    flexible="0+",
)

AlterUserScramCredentialsResponse = Message(
    "AlterUserScramCredentialsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "results",
        Array(
            "AlterUserScramCredentialsResult",
            Field("user", String),
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
        ),
    ),
    api_key=51,
    versions="0",
    flexible="0+",
)

"""SaslAuthenticate: one step of a SASL exchange."""

from ..codec.message import Message
from ..codec.types import Bytes, Field, Int16, Int64, String

SaslAuthenticateRequest = Message(
    "SaslAuthenticateRequest", Field("auth_bytes", Bytes), api_key=36, versions="0-2", flexible="2+"
)

SaslAuthenticateResponse = Message(
    "SaslAuthenticateResponse",
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field("auth_bytes", Bytes),
    Field("session_lifetime_ms", Int64, "1+", ignorable=True),
    api_key=36,
    versions="0-2",
    flexible="2+",
)

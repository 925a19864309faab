"""SaslHandshake: agree on a SASL mechanism."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, String

SaslHandshakeRequest = Message(
    "SaslHandshakeRequest", Field("mechanism", String), api_key=17, versions="0-1"
)

SaslHandshakeResponse = Message(
    "SaslHandshakeResponse",
    Field("error_code", Int16),
    Field("mechanisms", Array(String)),
    api_key=17,
    versions="0-1",
)

"""Who sent a request, as Envelope carries it to the controller (KIP-590)."""

from ..codec.message import Message
from ..codec.types import Bool, Field, String

DefaultPrincipalData = Message(
    "DefaultPrincipalData",
    Field("type", String),
    Field("name", String),
    Field("token_authenticated", Bool),
    versions="0",
    flexible="0+",
)

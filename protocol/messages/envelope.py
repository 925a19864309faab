"""Envelope: a request forwarded to the controller with its principal."""

from ..codec.message import Message
from ..codec.types import Bytes, Field, Int16

EnvelopeRequest = Message(
    "EnvelopeRequest",
    Field("request_data", Bytes),
    Field("request_principal", Bytes, nullable="0+"),
    Field("client_host_address", Bytes),
    api_key=58,
    versions="0",
    flexible="0+",
)

EnvelopeResponse = Message(
    "EnvelopeResponse",
    Field("response_data", Bytes, nullable="0+", default=None),
    Field("error_code", Int16),
    api_key=58,
    versions="0",
    flexible="0+",
)

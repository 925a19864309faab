"""Envelope: a request forwarded to the controller with its principal."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import bytes_, int16


class EnvelopeRequest(Message, api_key=58, versions="0", flexible="0+"):
    request_data: bytes = bytes_()
    request_principal: bytes | None = bytes_(nullable="0+")
    client_host_address: bytes = bytes_()


class EnvelopeResponse(Message, api_key=58, versions="0", flexible="0+"):
    response_data: bytes | None = bytes_(nullable="0+", default=None)
    error_code: int = int16()

"""The headers of requests and responses. Brokers read them without, in `protocol.headers`."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import int16, int32, string


class RequestHeader(Message, versions="0-2", flexible="2+"):
    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string("1+", nullable="1+", ignorable=True, flexible="none")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    correlation_id: int = int32()

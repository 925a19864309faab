"""The headers of requests and responses. Brokers read them without, in `protocol.headers`."""

from ..codec.message import Message
from ..codec.types import Field, Int16, Int32, String

RequestHeader = Message(
    "RequestHeader",
    Field("request_api_key", Int16),
    Field("request_api_version", Int16),
    Field("correlation_id", Int32),
    Field("client_id", String, "1+", nullable="1+", ignorable=True, flexible="none"),
    versions="0-2",
    flexible="2+",
)

ResponseHeader = Message(
    "ResponseHeader", Field("correlation_id", Int32), versions="0-1", flexible="1+"
)

"""UnregisterBroker: remove a broker's registration."""

from ..codec.message import Message
from ..codec.types import Field, Int16, Int32, String

UnregisterBrokerRequest = Message(
    "UnregisterBrokerRequest", Field("broker_id", Int32), api_key=64, versions="0", flexible="0+"
)

UnregisterBrokerResponse = Message(
    "UnregisterBrokerResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    api_key=64,
    versions="0",
    flexible="0+",
)

"""AllocateProducerIds: a broker takes a block of producer ids."""

from ..codec.message import Message
from ..codec.types import Field, Int16, Int32, Int64

AllocateProducerIdsRequest = Message(
    "AllocateProducerIdsRequest",
    Field("broker_id", Int32),
    Field("broker_epoch", Int64, default=-1),
    api_key=67,
    versions="0",
    flexible="0+",
)

AllocateProducerIdsResponse = Message(
    "AllocateProducerIdsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("producer_id_start", Int64),
    Field("producer_id_len", Int32),
    api_key=67,
    versions="0",
    flexible="0+",
)

"""PushTelemetry: client metrics (KIP-714)."""

from ..codec.message import Message
from ..codec.types import Bool, Bytes, Field, Int8, Int16, Int32, Uuid

PushTelemetryRequest = Message(
    "PushTelemetryRequest",
    Field("client_instance_id", Uuid),
    Field("subscription_id", Int32),
    Field("terminating", Bool),
    Field("compression_type", Int8),
    Field("metrics", Bytes),
    api_key=72,
    versions="0",
    flexible="0+",
)

PushTelemetryResponse = Message(
    "PushTelemetryResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    api_key=72,
    versions="0",
    flexible="0+",
)

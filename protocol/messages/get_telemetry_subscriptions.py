"""GetTelemetrySubscriptions: which client metrics are requested (KIP-714)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, String, Uuid

GetTelemetrySubscriptionsRequest = Message(
    "GetTelemetrySubscriptionsRequest",
    Field("client_instance_id", Uuid),
    api_key=71,
    versions="0",
    flexible="0+",
)

GetTelemetrySubscriptionsResponse = Message(
    "GetTelemetrySubscriptionsResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("client_instance_id", Uuid),
    Field("subscription_id", Int32),
    Field("accepted_compression_types", Array(Int8)),
    Field("push_interval_ms", Int32),
    Field("telemetry_max_bytes", Int32),
    Field("delta_temporality", Bool),
    Field("requested_metrics", Array(String)),
    api_key=71,
    versions="0",
    flexible="0+",
)

"""DescribeClientQuotas: the quotas that match a filter."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Float64, Int8, Int16, Int32, String

DescribeClientQuotasRequest = Message(
    "DescribeClientQuotasRequest",
    Field(
        "components",
        Array(
            "ComponentData",
            Field("entity_type", String),
            Field("match_type", Int8),
            Field("match", String, nullable="0+"),
        ),
    ),
    Field("strict", Bool),
    api_key=48,
    versions="0-1",
    flexible="1+",
)

DescribeClientQuotasResponse = Message(
    "DescribeClientQuotasResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field(
        "entries",
        Array(
            "EntryData",
            Field(
                "entity",
                Array(
                    "EntityData",
                    Field("entity_type", String),
                    Field("entity_name", String, nullable="0+"),
                ),
            ),
            Field("values", Array("ValueData", Field("key", String), Field("value", Float64))),
        ),
        nullable="0+",
    ),
    api_key=48,
    versions="0-1",
    flexible="1+",
)

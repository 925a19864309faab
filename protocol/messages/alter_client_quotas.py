"""AlterClientQuotas: set or remove quotas."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Float64, Int16, Int32, String

AlterClientQuotasRequest = Message(
    "AlterClientQuotasRequest",
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
            Field(
                "ops",
                Array(
                    "OpData", Field("key", String), Field("value", Float64), Field("remove", Bool)
                ),
            ),
        ),
    ),
    Field("validate_only", Bool),
    api_key=49,
    versions="0-1",
    flexible="1+",
)

AlterClientQuotasResponse = Message(
    "AlterClientQuotasResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "entries",
        Array(
            "EntryData",
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
            Field(
                "entity",
                Array(
                    "EntityData",
                    Field("entity_type", String),
                    Field("entity_name", String, nullable="0+"),
                ),
            ),
        ),
    ),
    api_key=49,
    versions="0-1",
    flexible="1+",
)

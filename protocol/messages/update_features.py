"""UpdateFeatures: raise or lower finalized feature levels."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, String

UpdateFeaturesRequest = Message(
    "UpdateFeaturesRequest",
    Field("timeout_ms", Int32, default=60000),
    Field(
        "feature_updates",
        Array(
            "FeatureUpdateKey",
            Field("feature", String),
            Field("max_version_level", Int16),
            Field("allow_downgrade", Bool, "0"),
            Field("upgrade_type", Int8, "1+", default=1),
        ),
    ),
    Field("validate_only", Bool, "1+"),
    api_key=57,
    versions="0-2",
    flexible="0+",
)

UpdateFeaturesResponse = Message(
    "UpdateFeaturesResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    Field(
        "results",
        Array(
            "UpdatableFeatureResult",
            Field("feature", String),
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
        ),
        "0-1",
        ignorable=True,
    ),
    api_key=57,
    versions="0-2",
    flexible="0+",
)

"""ApiVersions: which APIs and versions a broker serves."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, String

ApiVersionsRequest = Message(
    "ApiVersionsRequest",
    Field("client_software_name", String, "3+", ignorable=True),
    Field("client_software_version", String, "3+", ignorable=True),
    api_key=18,
    versions="0-4",
    flexible="3+",
)

ApiVersionsResponse = Message(
    "ApiVersionsResponse",
    Field("error_code", Int16),
    Field(
        "api_keys",
        Array(
            "ApiVersion",
            Field("api_key", Int16),
            Field("min_version", Int16),
            Field("max_version", Int16),
        ),
    ),
    Field("throttle_time_ms", Int32, "1+", ignorable=True),
    Field(
        "supported_features",
        Array(
            "SupportedFeatureKey",
            Field("name", String, "3+"),
            Field("min_version", Int16, "3+"),
            Field("max_version", Int16, "3+"),
        ),
        "3+",
        tag=0,
        ignorable=True,
    ),
    Field("finalized_features_epoch", Int64, "3+", default=-1, tag=1, ignorable=True),
    Field(
        "finalized_features",
        Array(
            "FinalizedFeatureKey",
            Field("name", String, "3+"),
            Field("max_version_level", Int16, "3+"),
            Field("min_version_level", Int16, "3+"),
        ),
        "3+",
        tag=2,
        ignorable=True,
    ),
    Field("zk_migration_ready", Bool, "3+", tag=3, ignorable=True),
    api_key=18,
    versions="0-4",
    flexible="3+",
)

"""DescribeConfigs: settings of topics, brokers and other resources."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int8, Int16, Int32, String

DescribeConfigsRequest = Message(
    "DescribeConfigsRequest",
    Field(
        "resources",
        Array(
            "DescribeConfigsResource",
            Field("resource_type", Int8),
            Field("resource_name", String),
            Field("configuration_keys", Array(String), nullable="0+"),
        ),
    ),
    Field("include_synonyms", Bool, "1+"),
    Field("include_documentation", Bool, "3+"),
    api_key=32,
    versions="0-4",
    flexible="4+",
)

DescribeConfigsResponse = Message(
    "DescribeConfigsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "results",
        Array(
            "DescribeConfigsResult",
            Field("error_code", Int16),
            Field("error_message", String, nullable="0+", default=None),
            Field("resource_type", Int8),
            Field("resource_name", String),
            Field(
                "configs",
                Array(
                    "DescribeConfigsResourceResult",
                    Field("name", String),
                    Field("value", String, nullable="0+"),
                    Field("read_only", Bool),
                    Field("is_default", Bool, "0"),
                    Field("config_source", Int8, "1+", default=-1, ignorable=True),
                    Field("is_sensitive", Bool),
                    Field(
                        "synonyms",
                        Array(
                            "DescribeConfigsSynonym",
                            Field("name", String, "1+"),
                            Field("value", String, "1+", nullable="0+"),
                            Field("source", Int8, "1+"),
                        ),
                        "1+",
                        ignorable=True,
                    ),
                    Field("config_type", Int8, "3+", ignorable=True),
                    Field("documentation", String, "3+", nullable="0+", ignorable=True),
                ),
            ),
        ),
    ),
    api_key=32,
    versions="0-4",
    flexible="4+",
)

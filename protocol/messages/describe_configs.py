"""DescribeConfigs: settings of topics, brokers and other resources."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, string


class DescribeConfigsRequest(Message, api_key=32, versions="0-4", flexible="4+"):
    resources: list[DescribeConfigsResource] = array()
    include_synonyms: bool = bool_("1+")
    include_documentation: bool = bool_("3+")

    class DescribeConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        configuration_keys: list[str] | None = array(of=string, nullable="0+")


class DescribeConfigsResponse(Message, api_key=32, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array()

    class DescribeConfigsResult(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[DescribeConfigsResponse.DescribeConfigsResourceResult] = array()

    class DescribeConfigsResourceResult(Struct):
        name: str = string()
        value: str | None = string(nullable="0+")
        read_only: bool = bool_()
        is_default: bool = bool_("0")
        config_source: int = int8("1+", default=-1, ignorable=True)
        is_sensitive: bool = bool_()
        synonyms: list[DescribeConfigsResponse.DescribeConfigsSynonym] = array("1+", ignorable=True)
        config_type: int = int8("3+", ignorable=True)
        documentation: str | None = string("3+", nullable="0+", ignorable=True)

    class DescribeConfigsSynonym(Struct):
        name: str = string("1+")
        value: str | None = string("1+", nullable="0+")
        source: int = int8("1+")

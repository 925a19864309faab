"""IncrementalAlterConfigs: set, delete, append or subtract single settings."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, string


class IncrementalAlterConfigsRequest(Message, api_key=44, versions="0-1", flexible="1+"):
    resources: list[AlterConfigsResource] = array()
    validate_only: bool = bool_()

    class AlterConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[IncrementalAlterConfigsRequest.AlterableConfig] = array()

    class AlterableConfig(Struct):
        name: str = string()
        config_operation: int = int8()
        value: str | None = string(nullable="0+")


class IncrementalAlterConfigsResponse(Message, api_key=44, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array()

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        resource_type: int = int8()
        resource_name: str = string()

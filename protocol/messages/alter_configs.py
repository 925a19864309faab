"""AlterConfigs: replace all settings of a resource."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, string


class AlterConfigsRequest(Message, api_key=33, versions="0-2", flexible="2+"):
    resources: list[AlterConfigsResource] = array()
    validate_only: bool = bool_()

    class AlterConfigsResource(Struct):
        resource_type: int = int8()
        resource_name: str = string()
        configs: list[AlterConfigsRequest.AlterableConfig] = array()

    class AlterableConfig(Struct):
        name: str = string()
        value: str | None = string(nullable="0+")


class AlterConfigsResponse(Message, api_key=33, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array()

    class AlterConfigsResourceResponse(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        resource_type: int = int8()
        resource_name: str = string()

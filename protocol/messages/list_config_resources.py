"""ListConfigResources: the resources that have settings of their own."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Message, api_key=74, versions="0-1", flexible="0+"):
    resource_types: list[int] = array("1+", of=int8)


class ListConfigResourcesResponse(Message, api_key=74, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ConfigResource] = array()

    class ConfigResource(Struct):
        resource_name: str = string()
        resource_type: int = int8("1+", default=16, ignorable=True)

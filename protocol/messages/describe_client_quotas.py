"""DescribeClientQuotas: the quotas that match a filter."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, float64, int8, int16, int32, string


class DescribeClientQuotasRequest(Message, api_key=48, versions="0-1", flexible="1+"):
    components: list[ComponentData] = array()
    strict: bool = bool_()

    class ComponentData(Struct):
        entity_type: str = string()
        match_type: int = int8()
        match: str | None = string(nullable="0+")


class DescribeClientQuotasResponse(Message, api_key=48, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    entries: list[EntryData] | None = array(nullable="0+")

    class EntryData(Struct):
        entity: list[DescribeClientQuotasResponse.EntityData] = array()
        values: list[DescribeClientQuotasResponse.ValueData] = array()

    class EntityData(Struct):
        entity_type: str = string()
        entity_name: str | None = string(nullable="0+")

    class ValueData(Struct):
        key: str = string()
        value: float = float64()

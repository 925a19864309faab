"""AlterClientQuotas: set or remove quotas."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, float64, int16, int32, string


class AlterClientQuotasRequest(Message, api_key=49, versions="0-1", flexible="1+"):
    entries: list[EntryData] = array()
    validate_only: bool = bool_()

    class EntryData(Struct):
        entity: list[AlterClientQuotasRequest.EntityData] = array()
        ops: list[AlterClientQuotasRequest.OpData] = array()

    class EntityData(Struct):
        entity_type: str = string()
        entity_name: str | None = string(nullable="0+")

    class OpData(Struct):
        key: str = string()
        value: float = float64()
        remove: bool = bool_()


class AlterClientQuotasResponse(Message, api_key=49, versions="0-1", flexible="1+"):
    throttle_time_ms: int = int32()
    entries: list[EntryData] = array()

    class EntryData(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        entity: list[AlterClientQuotasResponse.EntityData] = array()

    class EntityData(Struct):
        entity_type: str = string()
        entity_name: str | None = string(nullable="0+")

"""DeleteGroups: remove empty groups."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, string


class DeleteGroupsRequest(Message, api_key=42, versions="0-2", flexible="2+"):
    groups_names: list[str] = array(of=string)


class DeleteGroupsResponse(Message, api_key=42, versions="0-2", flexible="2+"):
    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array()

    class DeletableGroupResult(Struct):
        group_id: str = string()
        error_code: int = int16()

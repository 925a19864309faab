"""DeleteGroups: remove empty groups."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String

DeleteGroupsRequest = Message(
    "DeleteGroupsRequest",
    Field("groups_names", Array(String)),
    api_key=42,
    versions="0-2",
    flexible="2+",
)

DeleteGroupsResponse = Message(
    "DeleteGroupsResponse",
    Field("throttle_time_ms", Int32),
    Field(
        "results",
        Array("DeletableGroupResult", Field("group_id", String), Field("error_code", Int16)),
    ),
    api_key=42,
    versions="0-2",
    flexible="2+",
)

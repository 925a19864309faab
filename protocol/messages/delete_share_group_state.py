"""DeleteShareGroupState: a share coordinator forgets a partition's state."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String, Uuid

DeleteShareGroupStateRequest = Message(
    "DeleteShareGroupStateRequest",
    Field("group_id", String),
    Field(
        "topics",
        Array(
            "DeleteStateData",
            Field("topic_id", Uuid),
            Field("partitions", Array("PartitionData", Field("partition", Int32))),
        ),
    ),
    api_key=86,
    versions="0",
    flexible="0+",
)

DeleteShareGroupStateResponse = Message(
    "DeleteShareGroupStateResponse",
    Field(
        "results",
        Array(
            "DeleteStateResult",
            Field("topic_id", Uuid),
            Field(
                "partitions",
                Array(
                    "PartitionResult",
                    Field("partition", Int32),
                    Field("error_code", Int16),
                    Field("error_message", String, nullable="0+", default=None),
                ),
            ),
        ),
    ),
    api_key=86,
    versions="0",
    flexible="0+",
)

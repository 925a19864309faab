"""ControlledShutdown: a broker asks the controller to take its leaderships (until 3.9)."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, Int64, String

ControlledShutdownRequest = Message(
    "ControlledShutdownRequest",
    Field("broker_id", Int32),
    Field("broker_epoch", Int64, "2+", default=-1, ignorable=True),
    api_key=7,
    versions="0-3",
    flexible="3+",
)

ControlledShutdownResponse = Message(
    "ControlledShutdownResponse",
    Field("error_code", Int16),
    Field(
        "remaining_partitions",
        Array("RemainingPartition", Field("topic_name", String), Field("partition_index", Int32)),
    ),
    api_key=7,
    versions="0-3",
    flexible="3+",
)

"""CreatePartitions: give topics more partitions."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, string


class CreatePartitionsRequest(Message, api_key=37, versions="0-3", flexible="2+"):
    topics: list[CreatePartitionsTopic] = array()
    timeout_ms: int = int32()
    validate_only: bool = bool_()

    class CreatePartitionsTopic(Struct):
        name: str = string()
        count: int = int32()
        assignments: list[CreatePartitionsRequest.CreatePartitionsAssignment] | None = array(
            nullable="0+"
        )

    class CreatePartitionsAssignment(Struct):
        broker_ids: list[int] = array(of=int32)


class CreatePartitionsResponse(Message, api_key=37, versions="0-3", flexible="2+"):
    throttle_time_ms: int = int32()
    results: list[CreatePartitionsTopicResult] = array()

    class CreatePartitionsTopicResult(Struct):
        name: str = string()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)

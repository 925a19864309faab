"""ListPartitionReassignments: the moves of replicas under way."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, string


class ListPartitionReassignmentsRequest(Message, api_key=46, versions="0", flexible="0+"):
    timeout_ms: int = int32(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = array(nullable="0+", default=None)

    class ListPartitionReassignmentsTopics(Struct):
        name: str = string()
        partition_indexes: list[int] = array(of=int32)


class ListPartitionReassignmentsResponse(Message, api_key=46, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    topics: list[OngoingTopicReassignment] = array()

    class OngoingTopicReassignment(Struct):
        name: str = string()
        partitions: list[ListPartitionReassignmentsResponse.OngoingPartitionReassignment] = array()

    class OngoingPartitionReassignment(Struct):
        partition_index: int = int32()
        replicas: list[int] = array(of=int32)
        adding_replicas: list[int] = array(of=int32)
        removing_replicas: list[int] = array(of=int32)

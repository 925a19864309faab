"""StreamsGroupDescribe: streams groups (KIP-1071)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, int64, string, struct, uint16


class StreamsGroupDescribeRequest(Message, api_key=89, versions="0", flexible="0+"):
    group_ids: list[str] = array(of=string)
    include_authorized_operations: bool = bool_()


class StreamsGroupDescribeResponse(Message, api_key=89, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    groups: list[DescribedGroup] = array()

    class DescribedGroup(Struct):
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        group_id: str = string()
        group_state: str = string()
        group_epoch: int = int32()
        assignment_epoch: int = int32()
        topology: StreamsGroupDescribeResponse.Topology | None = struct(nullable="0+", default=None)
        members: list[StreamsGroupDescribeResponse.Member] = array()
        authorized_operations: int = int32(default=-0x80000000)

    class Topology(Struct):
        epoch: int = int32()
        subtopologies: list[StreamsGroupDescribeResponse.Subtopology] | None = array(
            nullable="0+", default=None
        )

    class Member(Struct):
        member_id: str = string()
        member_epoch: int = int32()
        instance_id: str | None = string(nullable="0+", default=None)
        rack_id: str | None = string(nullable="0+", default=None)
        client_id: str = string()
        client_host: str = string()
        topology_epoch: int = int32()
        process_id: str = string()
        user_endpoint: StreamsGroupDescribeResponse.Endpoint | None = struct(
            nullable="0+", default=None
        )
        client_tags: list[StreamsGroupDescribeResponse.KeyValue] = array()
        task_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = array()
        task_end_offsets: list[StreamsGroupDescribeResponse.TaskOffset] = array()
        assignment: StreamsGroupDescribeResponse.Assignment = struct()
        target_assignment: StreamsGroupDescribeResponse.Assignment = struct()
        is_classic: bool = bool_()

    class Subtopology(Struct):
        subtopology_id: str = string()
        source_topics: list[str] = array(of=string)
        repartition_sink_topics: list[str] = array(of=string)
        state_changelog_topics: list[StreamsGroupDescribeResponse.TopicInfo] = array()
        repartition_source_topics: list[StreamsGroupDescribeResponse.TopicInfo] = array()

    class Endpoint(Struct):
        host: str = string()
        port: int = uint16()

    class KeyValue(Struct):
        key: str = string()
        value: str = string()

    class TaskOffset(Struct):
        subtopology_id: str = string()
        partition: int = int32()
        offset: int = int64()

    class Assignment(Struct):
        active_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array()
        standby_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array()
        warmup_tasks: list[StreamsGroupDescribeResponse.TaskIds] = array()

    class TopicInfo(Struct):
        name: str = string()
        partitions: int = int32()
        replication_factor: int = int16()
        topic_configs: list[StreamsGroupDescribeResponse.KeyValue] = array()

    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array(of=int32)

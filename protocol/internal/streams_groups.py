"""What `__consumer_offsets` keeps of streams groups (KIP-1071)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int8, int16, int32, int64, string, struct, uint16


class StreamsGroupMetadataKey(Message, versions="0"):
    group_id: str = string()


class StreamsGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: int = int32()
    metadata_hash: int = int64()
    validated_topology_epoch: int = int32(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = array(nullable="0+", tag=1)

    class LastAssignmentConfig(Struct):
        key: str = string()
        value: str = string()


class StreamsGroupMemberMetadataKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class StreamsGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = struct(nullable="0+", default=None)
    client_tags: list[KeyValue] = array()

    class Endpoint(Struct):
        host: str = string()
        port: int = uint16()

    class KeyValue(Struct):
        key: str = string()
        value: str = string()


class StreamsGroupTargetAssignmentMetadataKey(Message, versions="0"):
    group_id: str = string()


class StreamsGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


class StreamsGroupTargetAssignmentMemberKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class StreamsGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    active_tasks: list[TaskIds] = array()
    standby_tasks: list[TaskIds] = array()
    warmup_tasks: list[TaskIds] = array()

    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array(of=int32)


class StreamsGroupCurrentMemberAssignmentKey(Message, versions="0"):
    group_id: str = string()
    member_id: str = string()


class StreamsGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    active_tasks: list[TaskIds] = array()
    standby_tasks: list[TaskIds] = array()
    warmup_tasks: list[TaskIds] = array()
    active_tasks_pending_revocation: list[TaskIds] = array()
    standby_tasks_pending_revocation: list[TaskIds] = array()
    warmup_tasks_pending_revocation: list[TaskIds] = array()

    class TaskIds(Struct):
        subtopology_id: str = string()
        partitions: list[int] = array(of=int32)
        assignment_epochs: list[int] | None = array(of=int32, nullable="0+", tag=0)


class StreamsGroupTopologyKey(Message, versions="0"):
    group_id: str = string()


class StreamsGroupTopologyValue(Message, versions="0", flexible="0+"):
    epoch: int = int32()
    subtopologies: list[Subtopology] = array()

    class Subtopology(Struct):
        subtopology_id: str = string()
        source_topics: list[str] = array(of=string)
        source_topic_regex: list[str] = array(of=string)
        state_changelog_topics: list[StreamsGroupTopologyValue.TopicInfo] = array()
        repartition_sink_topics: list[str] = array(of=string)
        repartition_source_topics: list[StreamsGroupTopologyValue.TopicInfo] = array()
        copartition_groups: list[StreamsGroupTopologyValue.CopartitionGroup] = array()

    class TopicInfo(Struct):
        name: str = string()
        partitions: int = int32()
        replication_factor: int = int16()
        topic_configs: list[StreamsGroupTopologyValue.TopicConfig] = array()

    class CopartitionGroup(Struct):
        source_topics: list[int] = array(of=int16)
        source_topic_regex: list[int] = array(of=int16)
        repartition_source_topics: list[int] = array(of=int16)

    class TopicConfig(Struct):
        key: str = string()
        value: str = string()

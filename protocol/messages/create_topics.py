"""CreateTopics: make topics."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, string, uuid


class CreateTopicsRequest(Message, api_key=19, versions="0-7", flexible="5+"):
    topics: list[CreatableTopic] = array()
    timeout_ms: int = int32(default=60000)
    validate_only: bool = bool_("1+")

    class CreatableTopic(Struct):
        name: str = string()
        num_partitions: int = int32()
        replication_factor: int = int16()
        assignments: list[CreateTopicsRequest.CreatableReplicaAssignment] = array()
        configs: list[CreateTopicsRequest.CreatableTopicConfig] = array()

    class CreatableReplicaAssignment(Struct):
        partition_index: int = int32()
        broker_ids: list[int] = array(of=int32)

    class CreatableTopicConfig(Struct):
        name: str = string()
        value: str | None = string(nullable="0+")


class CreateTopicsResponse(Message, api_key=19, versions="0-7", flexible="5+"):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array()

    class CreatableTopicResult(Struct):
        name: str = string()
        topic_id: bytes = uuid("7+", ignorable=True)
        error_code: int = int16()
        error_message: str | None = string("1+", nullable="0+", default=None, ignorable=True)
        topic_config_error_code: int = int16("5+", tag=0, ignorable=True)
        num_partitions: int = int32("5+", default=-1, ignorable=True)
        replication_factor: int = int16("5+", default=-1, ignorable=True)
        configs: list[CreateTopicsResponse.CreatableTopicConfigs] | None = array(
            "5+", nullable="5+", ignorable=True
        )

    class CreatableTopicConfigs(Struct):
        name: str = string("5+")
        value: str | None = string("5+", nullable="5+")
        read_only: bool = bool_("5+")
        config_source: int = int8("5+", default=-1, ignorable=True)
        is_sensitive: bool = bool_("5+")

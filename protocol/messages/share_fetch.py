"""ShareFetch: acquire records for a share group (KIP-932)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import (
    Records,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    int64,
    records,
    string,
    struct,
    uuid,
)


class ShareFetchRequest(Message, api_key=78, versions="1-2", flexible="0+"):
    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32(default=2147483647)
    max_records: int = int32()
    batch_size: int = int32()
    share_acquire_mode: int = int8("2+", ignorable=True)
    is_renew_ack: bool = bool_("2+")
    topics: list[FetchTopic] = array()
    forgotten_topics_data: list[ForgottenTopic] = array()

    class FetchTopic(Struct):
        topic_id: bytes = uuid()
        partitions: list[ShareFetchRequest.FetchPartition] = array()

    class ForgottenTopic(Struct):
        topic_id: bytes = uuid()
        partitions: list[int] = array(of=int32)

    class FetchPartition(Struct):
        partition_index: int = int32()
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = array()

    class AcknowledgementBatch(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        acknowledge_types: list[int] = array(of=int8)


class ShareFetchResponse(Message, api_key=78, versions="1-2", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32()
    responses: list[ShareFetchableTopicResponse] = array()
    node_endpoints: list[NodeEndpoint] = array()

    class ShareFetchableTopicResponse(Struct):
        topic_id: bytes = uuid()
        partitions: list[ShareFetchResponse.PartitionData] = array()

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable="0+", default=None)

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        acknowledge_error_code: int = int16()
        acknowledge_error_message: str | None = string(nullable="0+", default=None)
        current_leader: ShareFetchResponse.LeaderIdAndEpoch = struct()
        records: Records = records()
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = array()

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32()
        leader_epoch: int = int32()

    class AcquiredRecords(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        delivery_count: int = int16()

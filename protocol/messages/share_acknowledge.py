"""ShareAcknowledge: accept, release or reject acquired records (KIP-932)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, int64, string, struct, uuid


class ShareAcknowledgeRequest(Message, api_key=79, versions="1-2", flexible="0+"):
    group_id: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+")
    share_session_epoch: int = int32()
    is_renew_ack: bool = bool_("2+")
    topics: list[AcknowledgeTopic] = array()

    class AcknowledgeTopic(Struct):
        topic_id: bytes = uuid()
        partitions: list[ShareAcknowledgeRequest.AcknowledgePartition] = array()

    class AcknowledgePartition(Struct):
        partition_index: int = int32()
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = array()

    class AcknowledgementBatch(Struct):
        first_offset: int = int64()
        last_offset: int = int64()
        acknowledge_types: list[int] = array(of=int8)


class ShareAcknowledgeResponse(Message, api_key=79, versions="1-2", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    acquisition_lock_timeout_ms: int = int32("2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = array()
    node_endpoints: list[NodeEndpoint] = array()

    class ShareAcknowledgeTopicResponse(Struct):
        topic_id: bytes = uuid()
        partitions: list[ShareAcknowledgeResponse.PartitionData] = array()

    class NodeEndpoint(Struct):
        node_id: int = int32()
        host: str = string()
        port: int = int32()
        rack: str | None = string(nullable="0+", default=None)

    class PartitionData(Struct):
        partition_index: int = int32()
        error_code: int = int16()
        error_message: str | None = string(nullable="0+", default=None)
        current_leader: ShareAcknowledgeResponse.LeaderIdAndEpoch = struct()

    class LeaderIdAndEpoch(Struct):
        leader_id: int = int32()
        leader_epoch: int = int32()

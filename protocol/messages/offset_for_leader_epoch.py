"""OffsetForLeaderEpoch: where a leader's epoch ends in the log."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string


class OffsetForLeaderEpochRequest(Message, api_key=23, versions="0-4", flexible="4+"):
    replica_id: int = int32("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = array()

    class OffsetForLeaderTopic(Struct):
        topic: str = string()
        partitions: list[OffsetForLeaderEpochRequest.OffsetForLeaderPartition] = array()

    class OffsetForLeaderPartition(Struct):
        partition: int = int32()
        current_leader_epoch: int = int32("2+", default=-1, ignorable=True)
        leader_epoch: int = int32()


class OffsetForLeaderEpochResponse(Message, api_key=23, versions="0-4", flexible="4+"):
    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = array()

    class OffsetForLeaderTopicResult(Struct):
        topic: str = string()
        partitions: list[OffsetForLeaderEpochResponse.EpochEndOffset] = array()

    class EpochEndOffset(Struct):
        error_code: int = int16()
        partition: int = int32()
        leader_epoch: int = int32("1+", default=-1, ignorable=True)
        end_offset: int = int64(default=-1)

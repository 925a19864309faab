"""What `__consumer_offsets` keeps of committed offsets."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import int32, int64, string, uuid


class OffsetCommitKey(Message, versions="0"):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    offset: int = int64()
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string()
    commit_timestamp: int = int64()
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
    topic_id: bytes = uuid("4+", tag=0, ignorable=True)


class LegacyOffsetCommitKey(Message, versions="0"):
    group: str = string()
    topic: str = string()
    partition: int = int32()


class LegacyOffsetCommitValue(Message, versions="0"):
    offset: int = int64()
    metadata: str = string()
    commit_timestamp: int = int64()

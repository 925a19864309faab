"""What `__consumer_offsets` keeps of committed offsets."""

from ..codec.message import Message
from ..codec.types import Field, Int32, Int64, String, Uuid

OffsetCommitKey = Message(
    "OffsetCommitKey",
    Field("group", String),
    Field("topic", String),
    Field("partition", Int32),
    versions="0",
)

OffsetCommitValue = Message(
    "OffsetCommitValue",
    Field("offset", Int64),
    Field("leader_epoch", Int32, "3+", default=-1, ignorable=True),
    Field("metadata", String),
    Field("commit_timestamp", Int64),
    Field("expire_timestamp", Int64, "1", default=-1, ignorable=True),
    Field("topic_id", Uuid, "4+", tag=0, ignorable=True),
    versions="0-4",
    flexible="4+",
)

LegacyOffsetCommitKey = Message(
    "LegacyOffsetCommitKey",
    Field("group", String),
    Field("topic", String),
    Field("partition", Int32),
    versions="0",
)

LegacyOffsetCommitValue = Message(
    "LegacyOffsetCommitValue",
    Field("offset", Int64),
    Field("metadata", String),
    Field("commit_timestamp", Int64),
    versions="0",
)

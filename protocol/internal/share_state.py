"""What `__share_group_state` keeps of share partitions (KIP-932)."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int8, Int16, Int32, Int64, String, Uuid

ShareSnapshotKey = Message(
    "ShareSnapshotKey",
    Field("group_id", String),
    Field("topic_id", Uuid),
    Field("partition", Int32),
    versions="0",
)

ShareSnapshotValue = Message(
    "ShareSnapshotValue",
    Field("snapshot_epoch", Int32),
    Field("state_epoch", Int32),
    Field("leader_epoch", Int32),
    Field("start_offset", Int64),
    Field("delivery_complete_count", Int32, default=-1, tag=0),
    Field("create_timestamp", Int64),
    Field("write_timestamp", Int64),
    Field(
        "state_batches",
        Array(
            "StateBatch",
            Field("first_offset", Int64),
            Field("last_offset", Int64),
            Field("delivery_state", Int8),
            Field("delivery_count", Int16),
        ),
    ),
    versions="0",
    flexible="0+",
)

ShareUpdateKey = Message(
    "ShareUpdateKey",
    Field("group_id", String),
    Field("topic_id", Uuid),
    Field("partition", Int32),
    versions="0",
)

ShareUpdateValue = Message(
    "ShareUpdateValue",
    Field("snapshot_epoch", Int32),
    Field("leader_epoch", Int32),
    Field("start_offset", Int64),
    Field("delivery_complete_count", Int32, default=-1, tag=0),
    Field(
        "state_batches",
        Array(
            "StateBatch",
            Field("first_offset", Int64),
            Field("last_offset", Int64),
            Field("delivery_state", Int8),
            Field("delivery_count", Int16),
        ),
    ),
    versions="0",
    flexible="0+",
)

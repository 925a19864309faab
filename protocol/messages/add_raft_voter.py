"""AddRaftVoter: a voter joins a KRaft quorum (KIP-853)."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, String, Uint16, Uuid

AddRaftVoterRequest = Message(
    "AddRaftVoterRequest",
    Field("cluster_id", String, nullable="0+"),
    Field("timeout_ms", Int32),
    Field("voter_id", Int32),
    Field("voter_directory_id", Uuid),
    Field(
        "listeners",
        Array("Listener", Field("name", String), Field("host", String), Field("port", Uint16)),
    ),
    Field("ack_when_committed", Bool, "1+", default=True),
    api_key=80,
    versions="0-1",
    flexible="0+",
)

AddRaftVoterResponse = Message(
    "AddRaftVoterResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None),
    api_key=80,
    versions="0-1",
    flexible="0+",
)

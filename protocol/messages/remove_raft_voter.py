"""RemoveRaftVoter: a voter leaves a KRaft quorum (KIP-853)."""

from ..codec.message import Message
from ..codec.types import Field, Int16, Int32, String, Uuid

RemoveRaftVoterRequest = Message(
    "RemoveRaftVoterRequest",
    Field("cluster_id", String, nullable="0+"),
    Field("voter_id", Int32),
    Field("voter_directory_id", Uuid),
    api_key=81,
    versions="0",
    flexible="0+",
)

RemoveRaftVoterResponse = Message(
    "RemoveRaftVoterResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("error_message", String, nullable="0+", default=None, ignorable=True),
    api_key=81,
    versions="0",
    flexible="0+",
)

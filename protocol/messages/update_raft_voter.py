"""UpdateRaftVoter: a voter's endpoints and versions (KIP-853)."""

from ..codec.message import Message
from ..codec.types import Array, Field, Int16, Int32, String, Struct, Uint16, Uuid

UpdateRaftVoterRequest = Message(
    "UpdateRaftVoterRequest",
    Field("cluster_id", String, nullable="0+"),
    Field("current_leader_epoch", Int32),
    Field("voter_id", Int32),
    Field("voter_directory_id", Uuid),
    Field(
        "listeners",
        Array("Listener", Field("name", String), Field("host", String), Field("port", Uint16)),
    ),
    Field(
        "kraft_version_feature",
        Struct(
            "KRaftVersionFeature",
            Field("min_supported_version", Int16),
            Field("max_supported_version", Int16),
        ),
    ),
    api_key=82,
    versions="0",
    flexible="0+",
)

UpdateRaftVoterResponse = Message(
    "UpdateRaftVoterResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field(
        "current_leader",
        Struct(
            "CurrentLeader",
            Field("leader_id", Int32, default=-1),
            Field("leader_epoch", Int32, default=-1),
            Field("host", String),
            Field("port", Int32),
        ),
        tag=0,
    ),
    api_key=82,
    versions="0",
    flexible="0+",
)

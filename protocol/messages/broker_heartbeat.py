"""BrokerHeartbeat: a broker is alive, says so to a KRaft controller."""

from ..codec.message import Message
from ..codec.types import Array, Bool, Field, Int16, Int32, Int64, Uuid

BrokerHeartbeatRequest = Message(
    "BrokerHeartbeatRequest",
    Field("broker_id", Int32),
    Field("broker_epoch", Int64, default=-1),
    Field("current_metadata_offset", Int64),
    Field("want_fence", Bool),
    Field("want_shut_down", Bool),
    Field("offline_log_dirs", Array(Uuid), "1+", tag=0),
    Field("cordoned_log_dirs", Array(Uuid), "2+", nullable="2+", default=None, tag=1),
    api_key=63,
    versions="0-2",
    flexible="0+",
)

BrokerHeartbeatResponse = Message(
    "BrokerHeartbeatResponse",
    Field("throttle_time_ms", Int32),
    Field("error_code", Int16),
    Field("is_caught_up", Bool),
    Field("is_fenced", Bool, default=True),
    Field("should_shut_down", Bool),
    api_key=63,
    versions="0-2",
    flexible="0+",
)

"""BrokerHeartbeat: a broker is alive, says so to a KRaft controller."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import array, bool_, int16, int32, int64, uuid


class BrokerHeartbeatRequest(Message, api_key=63, versions="0-2", flexible="0+"):
    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = bool_()
    want_shut_down: bool = bool_()
    offline_log_dirs: list[bytes] = array("1+", of=uuid, tag=0)
    cordoned_log_dirs: list[bytes] | None = array("2+", of=uuid, nullable="2+", default=None, tag=1)


class BrokerHeartbeatResponse(Message, api_key=63, versions="0-2", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    is_caught_up: bool = bool_()
    is_fenced: bool = bool_(default=True)
    should_shut_down: bool = bool_()

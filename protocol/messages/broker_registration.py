"""BrokerRegistration: a broker registers with a KRaft controller."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, int64, string, uint16, uuid


class BrokerRegistrationRequest(Message, api_key=62, versions="0-4", flexible="0+"):
    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: bytes = uuid()
    listeners: list[Listener] = array()
    features: list[Feature] = array()
    rack: str | None = string(nullable="0+")
    is_migrating_zk_broker: bool = bool_("1+")
    log_dirs: list[bytes] = array("2+", of=uuid, ignorable=True)
    previous_broker_epoch: int = int64("3+", default=-1, ignorable=True)

    class Listener(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class Feature(Struct):
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()


class BrokerRegistrationResponse(Message, api_key=62, versions="0-4", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)

"""ControllerRegistration: a KRaft controller registers."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, string, uint16, uuid


class ControllerRegistrationRequest(Message, api_key=70, versions="0", flexible="0+"):
    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = bool_()
    listeners: list[Listener] = array()
    features: list[Feature] = array()

    class Listener(Struct):
        name: str = string()
        host: str = string()
        port: int = uint16()
        security_protocol: int = int16()

    class Feature(Struct):
        name: str = string()
        min_supported_version: int = int16()
        max_supported_version: int = int16()


class ControllerRegistrationResponse(Message, api_key=70, versions="0", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)

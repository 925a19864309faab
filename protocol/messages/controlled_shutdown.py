"""ControlledShutdown: a broker asks the controller to take its leaderships (until 3.9)."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, int16, int32, int64, string


class ControlledShutdownRequest(Message, api_key=7, versions="0-3", flexible="3+"):
    broker_id: int = int32()
    broker_epoch: int = int64("2+", default=-1, ignorable=True)


class ControlledShutdownResponse(Message, api_key=7, versions="0-3", flexible="3+"):
    error_code: int = int16()
    remaining_partitions: list[RemainingPartition] = array()

    class RemainingPartition(Struct):
        topic_name: str = string()
        partition_index: int = int32()

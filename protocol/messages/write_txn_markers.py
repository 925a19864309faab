"""WriteTxnMarkers: a coordinator ends a transaction in its partitions."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int8, int16, int32, int64, string


class WriteTxnMarkersRequest(Message, api_key=27, versions="0-2", flexible="1+"):
    markers: list[WritableTxnMarker] = array()

    class WritableTxnMarker(Struct):
        producer_id: int = int64()
        producer_epoch: int = int16()
        transaction_result: bool = bool_()
        topics: list[WriteTxnMarkersRequest.WritableTxnMarkerTopic] = array()
        coordinator_epoch: int = int32()
        transaction_version: int = int8("2+", ignorable=True)

    class WritableTxnMarkerTopic(Struct):
        name: str = string()
        partition_indexes: list[int] = array(of=int32)


class WriteTxnMarkersResponse(Message, api_key=27, versions="0-2", flexible="1+"):
    markers: list[WritableTxnMarkerResult] = array()

    class WritableTxnMarkerResult(Struct):
        producer_id: int = int64()
        topics: list[WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = array()

    class WritableTxnMarkerTopicResult(Struct):
        name: str = string()
        partitions: list[WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult] = array()

    class WritableTxnMarkerPartitionResult(Struct):
        partition_index: int = int32()
        error_code: int = int16()

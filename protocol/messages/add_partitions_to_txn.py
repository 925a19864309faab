"""AddPartitionsToTxn: partitions join a transaction, or are checked to be in it."""

from __future__ import annotations

from ..codec.message import Message
from ..codec.types import Struct, array, bool_, int16, int32, int64, string


class AddPartitionsToTxnRequest(Message, api_key=24, versions="0-5", flexible="3+"):
    transactions: list[AddPartitionsToTxnTransaction] = array("4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array("0-3")

    class AddPartitionsToTxnTransaction(Struct):
        transactional_id: str = string("4+")
        producer_id: int = int64("4+")
        producer_epoch: int = int16("4+")
        verify_only: bool = bool_("4+")
        topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic] = array("4+")

    class AddPartitionsToTxnTopic(Struct):
        name: str = string()
        partitions: list[int] = array(of=int32)


class AddPartitionsToTxnResponse(Message, api_key=24, versions="0-5", flexible="3+"):
    throttle_time_ms: int = int32()
    error_code: int = int16("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array("4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array("0-3")

    class AddPartitionsToTxnResult(Struct):
        transactional_id: str = string("4+")
        topic_results: list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult] = array("4+")

    class AddPartitionsToTxnTopicResult(Struct):
        name: str = string()
        results_by_partition: list[AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult] = (
            array()
        )

    class AddPartitionsToTxnPartitionResult(Struct):
        partition_index: int = int32()
        partition_error_code: int = int16()

"""Reading partitions for a fetch, each as far as its reader may see (Kafka's readFromLog)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..protocol.errors import ErrorCode, KafkaError
from ..storage.file_slice import FileSlice
from ..storage.topic_partition import TopicPartition
from .fetch import FetchParams, FetchPartition, FetchPartitionData, FetchResults
from .partition import FetchIsolation, Partition

Partitions = Mapping[TopicPartition, Partition]


def read_from_log(
    partitions: Partitions, params: FetchParams, asked: Sequence[FetchPartition]
) -> FetchResults:
    """Read each partition in turn until `max_bytes` are together.

    The first batch of all comes whole whatever its size, so that a reader gets on.
    """
    results: FetchResults = []
    bytes_left = params.max_bytes
    minimum_one_batch = True
    for wish in asked:
        data = _read_partition(partitions, params, wish, bytes_left, minimum_one_batch)
        size = len(data.records)
        if size:
            minimum_one_batch = False
            bytes_left = max(bytes_left - size, 0)
        results.append((wish, data))
    return results


def _read_partition(
    partitions: Partitions,
    params: FetchParams,
    asked: FetchPartition,
    bytes_left: int,
    minimum_one_batch: bool,
) -> FetchPartitionData:
    partition = partitions.get(asked.topic_partition)
    if partition is None:
        return FetchPartitionData(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    records: FileSlice | bytes = b""
    try:
        partition.check_leader(asked.current_leader_epoch)
        diverging_epoch = _diverging_epoch(partition, asked)
        at_the_end = asked.fetch_offset == partition.readable_end(params.isolation)
        if diverging_epoch is None and not at_the_end:
            records = partition.read_records(
                asked.fetch_offset,
                min(asked.max_bytes, bytes_left),
                params.isolation,
                minimum_one_batch=minimum_one_batch,
            ).records
    except KafkaError as refusal:
        return FetchPartitionData(refusal.code)
    return FetchPartitionData(
        ErrorCode.NONE,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        records,
        () if params.isolation is FetchIsolation.TRANSACTION_COMMITTED else None,
        diverging_epoch,
    )


def _diverging_epoch(partition: Partition, asked: FetchPartition) -> tuple[int, int] | None:
    """Where the reader's log left ours, if its last epoch says so (KIP-595).

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE, its epoch is older than all that are known here.
    """
    if asked.last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.end_offset_for_epoch(asked.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return epoch, end_offset
    return None

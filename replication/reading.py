"""Reading partitions for a fetch, each as far as its reader may see (Kafka's readFromLog)."""

from __future__ import annotations

from collections.abc import Sequence

from ..protocol.errors import ErrorCode, KafkaError
from ..storage.file_slice import FileSlice
from ..storage.transaction_index import AbortedTxn
from .fetch import FetchParams, FetchPartition, FetchPartitionData, FetchResults
from .partition import FetchIsolation, Partition
from .partition_table import PartitionTable


def read_from_log(
    partitions: PartitionTable, params: FetchParams, asked: Sequence[FetchPartition]
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
    partitions: PartitionTable,
    params: FetchParams,
    asked: FetchPartition,
    bytes_left: int,
    minimum_one_batch: bool,
) -> FetchPartitionData:
    partition = partitions.get(asked.topic_partition)
    if partition is None:
        return FetchPartitionData(partitions.error_of_missing(asked.topic_partition))
    records: FileSlice | bytes = b""
    reads_committed = params.isolation is FetchIsolation.TRANSACTION_COMMITTED
    aborted: Sequence[AbortedTxn] = ()
    try:
        partition.check_leader(asked.current_leader_epoch)
        diverging_epoch = _diverging_epoch(partition, asked)
        at_the_end = asked.fetch_offset == partition.readable_end(params.isolation)
        if diverging_epoch is None and not at_the_end:
            read = partition.read_records(
                asked.fetch_offset,
                min(asked.max_bytes, bytes_left),
                params.isolation,
                minimum_one_batch=minimum_one_batch,
            )
            records = read.records
            if reads_committed:
                aborted = partition.log.aborted_transactions_in(read)
    except KafkaError as refusal:
        return FetchPartitionData(refusal.code)
    return FetchPartitionData(
        ErrorCode.NONE,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        records,
        aborted if reads_committed else None,
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

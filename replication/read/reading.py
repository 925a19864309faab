"""Reading partitions for a fetch, each as far as its reader may see (Kafka's readFromLog)."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import ErrorCode, KafkaError
from ...storage.index.transaction_index import AbortedTxn
from ...storage.io.file_slice import FileSlice
from ..partition.partition import FetchIsolation, Partition
from ..partition.partition_table import PartitionTable
from ..partition.replica import Replica
from .fetch import FetchParams, FetchPartition, FetchPartitionData, FetchResults
from .replica_selector import NO_REPLICA


def read_from_log(
    partitions: PartitionTable,
    params: FetchParams,
    requested: Sequence[FetchPartition],
    *,
    note_follower: bool = False,
) -> FetchResults:
    """Read each partition in turn until `max_bytes` are together.

    The first batch of all comes whole whatever its size, so that a reader gets on.

    Args:
        partitions: those hosted here.
        params: of the whole fetch.
        requested: of each partition.
        note_follower: whether to take note of a follower's position; only the first read of a
            fetch does.
    """
    results: FetchResults = []
    bytes_left = params.max_bytes
    minimum_one_batch = True
    for each in requested:
        data = _read_partition(
            partitions, params, each, bytes_left, minimum_one_batch, note_follower
        )
        if data.records:
            minimum_one_batch = False
            bytes_left = max(bytes_left - len(data.records), 0)
        results.append((each, data))
    return results


def _read_partition(
    partitions: PartitionTable,
    params: FetchParams,
    requested: FetchPartition,
    bytes_left: int,
    minimum_one_batch: bool,
    note_follower: bool,
) -> FetchPartitionData:
    partition = partitions.get(requested.topic_partition)
    if partition is None:
        return FetchPartitionData(partitions.error_of_missing(requested.topic_partition))
    records: FileSlice | bytes = b""
    isolation = params.isolation
    reads_committed = isolation is FetchIsolation.TRANSACTION_COMMITTED
    aborted: Sequence[AbortedTxn] = ()
    follower: Replica | None = None
    diverging_epoch: tuple[int, int] | None = None
    is_read_here = True
    try:
        partition.check_leader(
            requested.current_leader_epoch, must_lead=not params.may_ask_followers
        )
        if params.replica_id >= 0:
            follower = partition.follower_or_error(
                params.replica_id, requested.current_leader_epoch, params.replica_epoch
            )
            is_read_here = not partitions.must_wait(partition, params)
        leader_end_offset = partition.log.log_end_offset
        if requested.last_fetched_epoch >= 0:
            diverging_epoch = _diverging_epoch(partition, requested)
        preferred = partitions.select_replica(partition, params, requested.fetch_offset)
        at_the_end = requested.fetch_offset == partition.readable_end(isolation)
        if not at_the_end and is_read_here and diverging_epoch is None and preferred == NO_REPLICA:
            if requested.max_bytes < 0:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka has it
            read = partition.read_records(
                requested.fetch_offset,
                min(requested.max_bytes, bytes_left),
                isolation,
                minimum_one_batch=minimum_one_batch,
            )
            records = read.records
            if reads_committed:
                aborted = partition.log.aborted_transactions_in(read)
    except KafkaError as refusal:
        return FetchPartitionData(refusal.code)
    if follower is not None and note_follower and diverging_epoch is None:
        partition.update_follower_fetch_state(
            follower, requested.fetch_offset, requested.log_start_offset, leader_end_offset
        )
    return FetchPartitionData(
        ErrorCode.NONE,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log.log_start_offset,
        records,
        aborted if reads_committed else None,
        diverging_epoch,
        preferred,
    )


def _diverging_epoch(partition: Partition, requested: FetchPartition) -> tuple[int, int] | None:
    """Where the reader's log left ours, if its last epoch says so (KIP-595).

    Raises:
        KafkaError: OFFSET_OUT_OF_RANGE, its epoch is older than all that are known here, or
            its offset than the log.
    """
    epoch, end_offset = partition.end_offset_for_epoch(requested.last_fetched_epoch)
    if epoch < 0 or end_offset < 0 or requested.fetch_offset < partition.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < requested.last_fetched_epoch or end_offset < requested.fetch_offset:
        return epoch, end_offset
    return None

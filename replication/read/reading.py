"""Reading partitions for a fetch, each as far as its reader may see (Kafka's readFromLog)."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_EPOCH
from ...runtime.steps import Steps, in_batches
from ...storage.index.transaction_index import AbortedTxn
from ...storage.io.file_slice import FileSlice
from ..partition.partition import FetchIsolation, Partition
from ..partition.partition_table import PartitionTable
from ..partition.replica import Replica
from .fetch import FetchParams, FetchPartition, FetchPartitionData, FetchResults
from .replica_selector import NO_REPLICA

PARTITIONS_AT_ONCE = 64
"""A fetch that has to look at more is done in steps: these take less than a millisecond."""
PARTITIONS_PER_PIECE = 4
"""So many partitions are one item of such steps."""


def read_from_log(
    partitions: PartitionTable,
    params: FetchParams,
    requested: Sequence[FetchPartition],
    *,
    note_follower: bool = False,
    minimum_one_batch: bool = True,
) -> FetchResults:
    """Read each partition in turn until `max_bytes` are together.

    Args:
        partitions: those hosted here.
        params: of the whole fetch.
        requested: of each partition.
        note_follower: whether to take note of a follower's position; only the first read of a
            fetch does.
        minimum_one_batch: whether the first batch of all comes whole whatever its size, so that
            a reader gets on.
    """
    results: FetchResults = []
    bytes_left = params.max_bytes
    for each in requested:
        data = _read_partition(
            partitions, params, each, bytes_left, minimum_one_batch, note_follower
        )
        if data.records:
            minimum_one_batch = False
            bytes_left = max(bytes_left - len(data.records), 0)
        results.append((each, data))
    return results


class Reading:
    """Reads the partitions of one fetch some at a time; `max_bytes` holds for all together.

    Between two times anything may happen to a partition that was read: what is answered of it is
    what it was then. Only its records are a stretch of a file, which a new leader may have cut
    and written again: where the leader changed they are read anew.

    Args:
        partitions, params, note_follower: as of `read_from_log`.
    """

    __slots__ = ("_note_follower", "_params", "_partitions", "_read_in", "_results")

    def __init__(
        self, partitions: PartitionTable, params: FetchParams, *, note_follower: bool = False
    ) -> None:
        self._partitions = partitions
        self._params = params
        self._note_follower = note_follower
        self._results: FetchResults = []
        self._read_in: dict[int, tuple[Partition | None, int]] = {}

    def read(self, requested: Sequence[FetchPartition]) -> FetchResults:
        """Read the next partitions; returns what was found in them."""
        has_records = bool(self._read_in)
        found = read_from_log(
            self._partitions,
            self._params,
            requested,
            note_follower=self._note_follower,
            minimum_one_batch=not has_records,
        )
        size = 0
        for number, (each, data) in enumerate(found, len(self._results)):
            if data.records:
                size += len(data.records)
                self._read_in[number] = self._leadership_of(each)
        if size:
            left = max(self._params.max_bytes - size, 0)
            self._params = self._params._replace(max_bytes=left)
        self._results += found
        return found

    def read_in_steps(self, requested: Sequence[FetchPartition]) -> Steps[FetchResults]:
        """Read all partitions; yields after some of them."""
        for piece in in_batches(requested, PARTITIONS_PER_PIECE):
            self.read(piece)
            yield
        return (yield from self.finish())

    def finish(self) -> Steps[FetchResults]:
        """What was found in all of them, as it may be sent now; yields after each with records."""
        results = self._results
        for number, read_in in self._read_in.items():
            each, data = results[number]
            if self._leadership_of(each) != read_in:
                results[number : number + 1] = read_from_log(
                    self._partitions,
                    self._params._replace(max_bytes=len(data.records)),
                    (each,),
                    minimum_one_batch=number == next(iter(self._read_in)),
                )
            yield
        return results

    def _leadership_of(self, requested: FetchPartition) -> tuple[Partition | None, int]:
        partition = self._partitions.get(requested.topic_partition)
        return partition, NO_EPOCH if partition is None else partition.leader_epoch


def ends_wait(data: FetchPartitionData) -> bool:
    """Whether a fetch is answered at once for one partition, whatever there is to read."""
    return bool(data.error or data.diverging_epoch or data.preferred_read_replica != NO_REPLICA)


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

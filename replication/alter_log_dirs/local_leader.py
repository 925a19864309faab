"""The log of the current replica as a leader: a fetcher's requests, answered locally.

Kafka's LocalLeaderEndPoint. Nothing goes through a socket, and nothing is fenced: the log that
is read is the one whose every truncation the copy sees (`Log.generation`).
"""

from __future__ import annotations

from collections.abc import Callable

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import INVALID_SESSION_ID, LATEST_TIMESTAMP
from ...common.topic_partition import TopicPartition
from ...storage.io.file_slice import FileSlice
from ..fetcher.plans import (
    EpochEnd,
    EpochsPlan,
    FetchAnswer,
    FetchedPartition,
    FetchPlan,
    ListedOffset,
    OffsetsPlan,
)
from ..partition.partition import FetchIsolation, Partition


class LocalLeader:
    """Answers for one partition.

    Args:
        partition: whose log is copied; this broker need not lead it.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._topic_partition = partition.topic_partition

    def find(self, plan: FetchPlan) -> FileSlice | bytes | ErrorCode:
        """Where the records that a fetch asks for lie, up to the log's end; or why there are none.

        To be read with `read`, in a thread if need be, and answered with `answer`.
        """
        requested = plan.requested[self._topic_partition]
        try:
            return self._partition.read_records(
                requested.fetch_offset,
                requested.max_bytes,
                FetchIsolation.LOG_END,
                minimum_one_batch=True,
            ).records
        except KafkaError as refusal:
            return refusal.code

    def reaches_end(self, found: FileSlice | bytes | ErrorCode) -> bool:
        """Whether nothing published lies behind what was found."""
        active = self._partition.log.segments.active
        return not isinstance(found, FileSlice) or (
            found.file is active.file and found.position + found.size == active.size
        )

    def answer(self, records: bytes | ErrorCode) -> FetchAnswer:
        """The answer to a fetch with these records."""
        partition = self._partition
        if isinstance(records, ErrorCode):
            fetched = FetchedPartition(records)
        else:
            fetched = FetchedPartition(
                ErrorCode.NONE, partition.high_watermark, partition.log_start_offset, records
            )
        return FetchAnswer(ErrorCode.NONE, INVALID_SESSION_ID, {self._topic_partition: fetched})

    def epochs(self, plan: EpochsPlan) -> dict[TopicPartition, EpochEnd]:
        """Where an epoch ends in the log."""

        def end_of(epoch: int) -> EpochEnd:
            return EpochEnd(ErrorCode.NONE, *self._partition.end_offset_for_epoch(epoch))

        return {
            tp: _or_error(end_of, requested.leader_epoch)
            for tp, requested in plan.partitions.items()
        }

    def offsets(self, plan: OffsetsPlan) -> dict[TopicPartition, ListedOffset]:
        """Where the log ends, or begins."""
        partition = self._partition
        is_of_end = plan.timestamp == LATEST_TIMESTAMP
        offset = partition.log_end_offset if is_of_end else partition.log_start_offset
        return {tp: ListedOffset(ErrorCode.NONE, offset) for tp in plan.partitions}


def read(found: FileSlice | bytes | ErrorCode) -> bytes | ErrorCode:
    """The records themselves, or why there are none; waits for the disk."""
    if not isinstance(found, FileSlice):
        return found
    try:
        return found.read()
    except KafkaError as failure:
        return failure.code


def _or_error(end_of: Callable[[int], EpochEnd], epoch: int) -> EpochEnd:
    try:
        return end_of(epoch)
    except KafkaError as failure:
        return EpochEnd(failure.code)

"""Appends on their way: staged, flushed, and perhaps waiting for replicas (article 003)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ..common.errors import ErrorCode
from ..common.named_tuple import NamedTuple
from ..common.sentinels import NO_OFFSET, NO_TIMESTAMP
from ..common.topic_partition import TopicPartition
from ..storage.log.log_append_info import LogAppendInfo
from .partition.partition import Partition
from .purgatory.delayed_operation import DelayedOperation


class RecordError(NamedTuple):
    """One record of a refused batch and what is wrong with it (KIP-467)."""

    batch_index: int
    message: str | None


class PartitionResponse(NamedTuple):
    """What became of the records sent to one partition."""

    error: ErrorCode = ErrorCode.NONE
    base_offset: int = NO_OFFSET
    log_append_time_ms: int = NO_TIMESTAMP
    log_start_offset: int = NO_OFFSET
    record_errors: Sequence[RecordError] = ()
    error_message: str | None = None


def appended(info: LogAppendInfo) -> PartitionResponse:
    """The outcome of a batch that is in the log."""
    return PartitionResponse(
        ErrorCode.NONE, info.first_offset, info.log_append_time_ms, info.log_start_offset
    )


AppendCallback = Callable[[dict[TopicPartition, PartitionResponse]], None]


class StagedAppend(Protocol):
    """What waits for a flush."""

    def fail_partition(self, partition: Partition, error: ErrorCode, message: str) -> None:
        """Take note that the partition's flush did not succeed, if it is one of this append's."""

    def complete(self) -> None:
        """Go on: the flush is over. Called once."""


class PendingPartition:
    """One partition of an append: staged, with the answer it gets if all goes well."""

    __slots__ = ("partition", "required_offset", "response")

    def __init__(
        self, partition: Partition | None, required_offset: int, response: PartitionResponse
    ) -> None:
        self.partition = partition
        self.required_offset = required_offset
        self.response = response


class PendingAppend:
    """One `append_records` call between its staging and its answer.

    Args:
        timeout_ms: how long it may wait for replicas.
        on_complete: gets the outcome of every partition.
        wait: what to do with it after the flush if it wants all acks; None if it does not.
    """

    __slots__ = ("_wait", "on_complete", "partitions", "timeout_ms")

    def __init__(
        self,
        timeout_ms: int,
        on_complete: AppendCallback,
        wait: Callable[[PendingAppend], None] | None,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.on_complete = on_complete
        self._wait = wait
        self.partitions: dict[TopicPartition, PendingPartition] = {}

    def fail_partition(self, partition: Partition, error: ErrorCode, message: str) -> None:
        """Answer the partition with an error, for its flush did not succeed."""
        pending = self.partitions.get(partition.topic_partition)
        if pending is not None and pending.partition is partition:
            pending.partition = None
            pending.response = PartitionResponse(error, error_message=message)

    def complete(self) -> None:
        """Answer, or wait for replicas."""
        if self._wait is None:
            self.answer()
        else:
            self._wait(self)

    def settle(self) -> bool:
        """Take note of the replicas' state; returns whether no partition waits any longer."""
        all_settled = True
        for pending in self.partitions.values():
            partition = pending.partition
            if partition is None:
                continue
            done, error = partition.has_replicated(pending.required_offset)
            if not done:
                all_settled = False
                continue
            pending.partition = None
            if error:
                pending.response = PartitionResponse(error)
        return all_settled

    def answer(self) -> None:
        """Hand every partition's outcome to the caller."""
        self.on_complete({tp: pending.response for tp, pending in self.partitions.items()})


class DelayedProduce(DelayedOperation):
    """An append with acks=all that waits for the high watermark (Kafka's DelayedProduce)."""

    __slots__ = ("pending",)

    def __init__(self, pending: PendingAppend) -> None:
        super().__init__()
        self.pending = pending

    def is_satisfied(self) -> bool:
        """Whether every partition is replicated or failed."""
        return self.pending.settle()

    def on_complete(self) -> None:
        """Answer; what is not replicated by now has timed out."""
        for waiting in self.pending.partitions.values():
            if waiting.partition is not None:
                waiting.partition = None
                waiting.response = PartitionResponse(ErrorCode.REQUEST_TIMED_OUT)
        self.pending.answer()

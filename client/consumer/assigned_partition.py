"""One partition that a consumer reads: where it is, and what was fetched and not handed out yet.

Three offsets follow each other: what the caller is done with, what it was handed out, and what
is fetched. Source: Kafka's `SubscriptionState` and `FetchBuffer`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from ...common.errors import KafkaError
from ...common.sentinels import NO_EPOCH, NO_OFFSET
from .fetched_records import FetchedBatch, FetchedRecord, iter_fetched, whole_batches
from .fetcher import FetchedPartition


class PreferredReplica(NamedTuple):
    """Where a leader would have a client read (KIP-392).

    Attributes:
        node_id: the replica.
        until_ms: monotonic; from then on it is read at the leader.
    """

    node_id: int
    until_ms: int


class AssignedPartition:
    """One partition.

    Args:
        topic: its name.
        partition: its index.

    Attributes:
        position: the offset that is handed out next; None while it is not known.
        consumed: the offset behind the records that the caller is done with: it has polled
            again. What is committed automatically is this.
        fetch_offset: the offset that is requested next; None while it is not known.
        fetch_epoch: the leader epoch of the last batch before that; -1 where it is not known.
        validated_epoch: the leader's epoch in which its log was found to have what is before
            `fetch_offset`.
        leader_epoch: of the last batch that was handed out; -1 where it is not known.
        preferred_replica: where the leader would have this client read, and until when.
        is_paused: whether the caller does not want records now.
        is_going: whether it is being revoked: nothing is fetched or handed out.
        must_reset: whether the reset policy says where to read, and not the committed offset.
        buffered_bytes: of what was fetched and not handed out.
    """

    __slots__ = (
        "_index",
        "_opened",
        "_parts",
        "_records",
        "buffered_bytes",
        "consumed",
        "fetch_epoch",
        "fetch_offset",
        "high_watermark",
        "is_going",
        "is_paused",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "must_reset",
        "partition",
        "position",
        "preferred_replica",
        "topic",
        "validated_epoch",
    )

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position: int | None = None
        self.consumed: int | None = None
        self.fetch_offset: int | None = None
        self.fetch_epoch = NO_EPOCH
        self.validated_epoch = NO_EPOCH
        self.leader_epoch = NO_EPOCH
        self.preferred_replica: PreferredReplica | None = None
        self.is_paused = False
        self.is_going = False
        self.must_reset = False
        self.high_watermark = NO_OFFSET
        self.last_stable_offset = NO_OFFSET
        self.log_start_offset = NO_OFFSET
        self.buffered_bytes = 0
        self._parts: deque[tuple[Iterator[FetchedBatch], int]] = deque()
        """What was fetched, and how many bytes that is."""
        self._opened: FetchedBatch | None = None
        self._records: list[FetchedRecord] = []
        """Of the batch that is opened, of which those before the index were handed out."""
        self._index = 0

    @property
    def key(self) -> tuple[str, int]:
        """Topic and partition."""
        return self.topic, self.partition

    @property
    def is_fetchable(self) -> bool:
        """Whether records may be requested."""
        return self.fetch_offset is not None and not self.is_paused and not self.is_going

    @property
    def has_records(self) -> bool:
        """Whether there is something to hand out, or to move the position by."""
        return not (self.is_paused or self.is_going) and (
            self._index < len(self._records) or bool(self._parts)
        )

    @property
    def must_locate(self) -> bool:
        """Whether somebody has to find out where to read."""
        return self.position is None and not self.is_going

    # --- Moving ------------------------------------------------------------------------------

    def seek(self, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Read on from an offset; what was fetched is dropped."""
        self.position = self.consumed = self.fetch_offset = offset
        self.leader_epoch = self.fetch_epoch = leader_epoch
        self.validated_epoch = NO_EPOCH
        self.must_reset = False
        self._drop_buffer()

    def lose_position(self) -> None:
        """Nobody knows where to read on; the reset policy says."""
        self.position = self.fetch_offset = None
        self.must_reset = True
        self._drop_buffer()

    def fetch_again(self) -> None:
        """What was fetched cannot be read, or is not there any more."""
        self.fetch_offset = self.position
        self.fetch_epoch = self.leader_epoch
        self._drop_buffer()

    def stop_fetching(self) -> None:
        """There is nothing at the position, and the caller is to seek."""
        self.fetch_offset = None

    def must_validate(self, leader_epoch: int) -> bool:
        """Whether a leader of this epoch may not have what was read before."""
        return self.fetch_epoch != NO_EPOCH and leader_epoch > self.validated_epoch

    def finish(self) -> None:
        """The caller is done with all that was handed out."""
        self.consumed = self.position

    # --- Fetching and handing out ------------------------------------------------------------

    def add(self, fetched: FetchedPartition) -> None:
        """Keep what was fetched, unless the position has been moved meanwhile.

        Raises:
            KafkaError: CORRUPT_MESSAGE; MESSAGE_TOO_LARGE, if not one batch is whole.
        """
        self.high_watermark = fetched.high_watermark
        self.last_stable_offset = fetched.last_stable_offset
        self.log_start_offset = fetched.log_start_offset
        if fetched.offset != self.fetch_offset or not len(fetched.records):
            return
        batches = whole_batches(self.topic, self.partition, fetched.offset, fetched.records)
        self.fetch_offset = max(fetched.offset, batches[-1].next_offset)
        self.fetch_epoch = batches[-1].partition_leader_epoch
        self.buffered_bytes += len(fetched.records)
        self._parts.append(
            (
                iter_fetched(self.topic, self.partition, fetched.offset, batches, fetched.aborted),
                len(fetched.records),
            )
        )

    def take_batch(self) -> FetchedBatch | None:
        """Hand out the next batch with records, or what `take_records` has left of one; None if
        there is none.

        Raises:
            KafkaError: CORRUPT_MESSAGE; the position stays before the batch.
        """
        position = self.position or 0
        self._records, self._index = [], 0
        if self._opened is not None and self._opened.next_offset > position:
            fetched = self._opened
        else:
            found = self._next_batch(position)
            if found is None:
                return None
            fetched = found
        self._opened = None
        self.position = fetched.next_offset
        self.leader_epoch = fetched.batch.partition_leader_epoch
        return fetched._replace(first_offset=max(position, fetched.first_offset))

    def take_records(self, count_max: int) -> list[FetchedRecord]:
        """Hand out the next records of one batch; none if there are none.

        Raises:
            KafkaError: CORRUPT_MESSAGE; the position stays before the batch.
        """
        if not self._open_batch():
            return []
        taken = self._records[self._index : self._index + count_max]
        self._index += len(taken)
        self._move_behind(taken[-1])
        return taken

    def take_decoded(self) -> FetchedRecord | None:
        """Hand out the next record of a batch that is decoded already; None if there is none."""
        if self._index == len(self._records):
            return None
        record = self._records[self._index]
        self._index += 1
        self._move_behind(record)
        return record

    def take_record(self) -> FetchedRecord | None:
        """Hand out the next record; None if there is none.

        Raises:
            KafkaError: CORRUPT_MESSAGE; the position stays before the batch.
        """
        return self.take_decoded() if self._open_batch() else None

    # --- Inside ------------------------------------------------------------------------------

    def _move_behind(self, record: FetchedRecord) -> None:
        is_last = self._index == len(self._records)
        assert self._opened is not None
        self.position = self._opened.next_offset if is_last else record.offset + 1

    def _open_batch(self) -> bool:
        """Decode the next batch, if the one before it is used up; whether there are records."""
        while self._index == len(self._records):
            self._opened = self._next_batch(self.position or 0)
            if self._opened is None:
                return False
            try:
                self._records, self._index = self._opened.records(), 0
            except KafkaError:
                self.fetch_again()
                raise
            self.leader_epoch = self._opened.batch.partition_leader_epoch
        return True

    def _next_batch(self, position: int) -> FetchedBatch | None:
        """The next batch with records, from a position on; moves over the others."""
        while self._parts:
            batches, size = self._parts[0]
            try:
                fetched = next(batches, None)
            except KafkaError:
                self.fetch_again()
                raise
            if fetched is None:
                self._parts.popleft()
                self.buffered_bytes -= size
            elif fetched.next_offset > position:
                if not fetched.is_hidden:
                    return fetched
                self.position = position = fetched.next_offset
        return None

    def _drop_buffer(self) -> None:
        self._parts.clear()
        self._opened = None
        self._records, self._index = [], 0
        self.buffered_bytes = 0

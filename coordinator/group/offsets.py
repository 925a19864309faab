"""Committed offsets: one position, all positions of a group, and those of open transactions.

A producer's marker stands in the partition of `__consumer_offsets`, and ends what it would
commit for every group that is kept there. Source: Kafka's OffsetMetadataManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from ...common.sentinels import NO_EPOCH, ZERO_UUID


class PendingAppends:
    """Counts the appends of one group, which end in the order in which they began."""

    __slots__ = ("_begun", "_finished", "_waiting")

    def __init__(self) -> None:
        self._begun = 0
        self._finished = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def is_settled(self) -> bool:
        """Whether nothing is on its way."""
        return self._begun == self._finished

    def begin(self) -> None:
        """An append was handed to the log."""
        self._begun += 1

    def finish(self) -> None:
        """An append ended, well or not."""
        self._finished += 1
        while self._waiting and self._waiting[0][0] <= self._finished:
            self._waiting.popleft()[1]()

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call `callback` when all that is on its way now has ended: at once if nothing is."""
        if self.is_settled:
            callback()
        else:
            self._waiting.append((self._begun, callback))


NO_EXPIRY = -1


@dataclass(slots=True)
class AppendedAt:
    """Where a batch of `__consumer_offsets` is; -1 until it is there.

    All positions of a commit share it, so that the end of a long one takes no look at each.
    """

    offset: int = -1


NOT_APPENDED = AppendedAt()


class OffsetAndMetadata(NamedTuple):
    """One committed position.

    Attributes:
        leader_epoch: of the last record consumed, -1 if the client did not say (KIP-320).
        commit_timestamp_ms: wall time of the commit.
        expire_timestamp_ms: wall time of its end where the commit set one
            (OffsetCommit v2 to v4), else -1.
        topic_id: of the topic it was made for, zeros if unknown; a topic that was deleted
            and made again has no committed offsets (KIP-848).
        appended_at: where its batch is in `__consumer_offsets`, or the record itself.
    """

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = NO_EXPIRY
    topic_id: bytes = ZERO_UUID
    appended_at: AppendedAt = NOT_APPENDED

    def is_for_topic(self, topic_id: bytes) -> bool:
        """Whether it was made for the topic of that id, as far as both ids are known."""
        return topic_id == self.topic_id or topic_id == ZERO_UUID or self.topic_id == ZERO_UUID


Positions: TypeAlias = dict[tuple[str, int], OffsetAndMetadata]
"""By topic and partition."""


class GroupOffsets:
    """All committed positions of one group, and those of transactions still open.

    Pending ones (by producer id) become committed or vanish with their transaction's end.
    """

    __slots__ = ("_pending", "_topics")

    def __init__(self) -> None:
        self._topics: dict[str, dict[int, OffsetAndMetadata]] = {}
        self._pending: dict[int, Positions] = {}

    def __bool__(self) -> bool:
        """Whether anything is committed or pending."""
        return bool(self._topics or self._pending)

    def __len__(self) -> int:
        """How many partitions have a committed offset."""
        return sum(map(len, self._topics.values()))

    def __iter__(self) -> Iterator[tuple[str, int, OffsetAndMetadata]]:
        """Topic, partition and position of all that is committed."""
        for topic, partitions in self._topics.items():
            for partition, position in partitions.items():
                yield topic, partition, position

    def topics(self) -> Iterable[tuple[str, dict[int, OffsetAndMetadata]]]:
        """Committed positions by topic."""
        return self._topics.items()

    def get(self, topic: str, partition: int) -> OffsetAndMetadata | None:
        """The committed position, if there is one."""
        partitions = self._topics.get(topic)
        return None if partitions is None else partitions.get(partition)

    def put(self, topic: str, partition: int, position: OffsetAndMetadata) -> None:
        """Commit a position."""
        self.put_all({(topic, partition): position})

    def put_all(self, positions: Positions) -> None:
        """Commit positions, thousands maybe, in one go: no function is called for each."""
        topics = self._topics
        for (topic, partition), position in positions.items():
            if topic in topics:
                topics[topic][partition] = position
            else:
                topics[topic] = {partition: position}

    def remove(self, topic: str, partition: int) -> None:
        """Forget a position, and any that a transaction was about to commit there."""
        partitions = self._topics.get(topic)
        if partitions is not None:
            partitions.pop(partition, None)
            if not partitions:
                del self._topics[topic]
        for producer_id, pending in list(self._pending.items()):
            if pending.pop((topic, partition), None) is not None and not pending:
                del self._pending[producer_id]

    # -- transactions -------------------------------------------------------------------

    @property
    def has_open_transactions(self) -> bool:
        """Whether a transaction that committed offsets here has not ended."""
        return bool(self._pending)

    def put_pending(
        self, producer_id: int, topic: str, partition: int, position: OffsetAndMetadata
    ) -> None:
        """Note a position that an open transaction would commit."""
        self.put_all_pending(producer_id, {(topic, partition): position})

    def put_all_pending(self, producer_id: int, positions: Positions) -> None:
        """Note positions that an open transaction would commit."""
        self._pending.setdefault(producer_id, {}).update(positions)

    def is_pending(self, topic: str, partition: int) -> bool:
        """Whether an open transaction would change this partition's position (KIP-447)."""
        return any((topic, partition) in pending for pending in self._pending.values())

    def pending_partitions(self) -> set[tuple[str, int]]:
        """The partitions for which an open transaction has a position."""
        return {key for pending in self._pending.values() for key in pending}

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply or drop what a transaction would commit.

        A plain commit whose record is later in the log than the transaction's stays: the
        order of the records decides, also after compaction.
        """
        pending = self._pending.pop(producer_id, {})
        if not committed:
            return
        nothing: dict[int, OffsetAndMetadata] = {}
        topics = self._topics
        self.put_all(
            {
                (topic, partition): position
                for (topic, partition), position in pending.items()
                if partition not in (known := topics.get(topic, nothing))
                or known[partition].appended_at.offset < position.appended_at.offset
            }
        )


class OffsetsOwner(Protocol):
    """A group, as far as its offsets go."""

    offsets: GroupOffsets
    in_flight: PendingAppends


FindGroup = Callable[[str], OffsetsOwner | None]
"""The group of an id, None if there is none any more."""


class OpenTransactions:
    """The groups of one partition that each producer would commit offsets for."""

    __slots__ = ("_group_ids",)

    def __init__(self) -> None:
        self._group_ids: dict[int, set[str]] = {}

    def __len__(self) -> int:
        """How many producers there are."""
        return len(self._group_ids)

    def note(self, producer_id: int, group_id: str) -> None:
        """A producer's transaction has an offset for a group, or is about to."""
        self._group_ids.setdefault(producer_id, set()).add(group_id)

    def end(self, producer_id: int, find_group: FindGroup, *, committed: bool) -> None:
        """A marker has ended the producer's transaction, if there was one.

        What it would commit may be on its way still, since replicas tell of what they have in
        any order: the end comes after it, as in the log.
        """
        for group_id in self._group_ids.pop(producer_id, ()):
            group = find_group(group_id)
            if group is not None:
                end = partial(group.offsets.end_transaction, producer_id, committed=committed)
                group.in_flight.when_settled(end)

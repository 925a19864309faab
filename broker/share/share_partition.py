"""One topic partition as one share group reads it: which records are under way, and with whom.

The records from the start offset on to the next one that was never handed out are *in flight*: a
list of ranges of offsets, each in one state, without gaps. Time comes as an argument, and storing
is the caller's: what changes is a `StateWrite`, which is final once `write_completed` says so.
Until then nobody else is given those records. Source: KIP-932; Kafka's SharePartition.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_OFFSET
from ...coordinator.share.operations import StateBatch
from .record_states import (
    EVENT_OF,
    RECORD_TRANSITIONS,
    TERMINAL,
    AcknowledgeType,
    AcquireMode,
    RecordEvent,
    RecordState,
)

NO_MEMBER = ""
NO_DEADLINE = 0
CAREFUL_FROM_MIN = 2


class ShareLimits(NamedTuple):
    """What holds for a group, as it is now.

    Attributes:
        delivery_count_max: how often a record is handed out at most.
        record_locks_max: how many records may be in flight.
        lock_ms: how long a member may keep a record.
        may_renew: whether members may renew their locks.
    """

    delivery_count_max: int = 5
    record_locks_max: int = 2000
    lock_ms: int = 30_000
    may_renew: bool = True

    @property
    def careful_from(self) -> int:
        """From so many deliveries on, fewer records go together with each more."""
        return max(CAREFUL_FROM_MIN, (self.delivery_count_max + 1) // 2)

    def is_last_delivery(self, delivery_count: int) -> bool:
        """Whether a record that was delivered so often may be delivered only once more."""
        return self.delivery_count_max > CAREFUL_FROM_MIN and (
            delivery_count == self.delivery_count_max - 1
        )


class Acknowledgement(NamedTuple):
    """What a member says of consecutive records.

    Attributes:
        types: numbers of `AcknowledgeType`: one for all, or one for each.
    """

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def is_valid_after(self, end: int, *, may_renew: bool) -> bool:
        """Whether a request may have it (KafkaApis.validateAcknowledgementBatches).

        Args:
            end: the last offset of the one before it, which it may touch; -1: there is none.
            may_renew: whether the request says that it renews locks.
        """
        first, last, types = self
        type_max = AcknowledgeType.RENEW if may_renew else AcknowledgeType.REJECT
        return (
            end <= first <= last
            and len(types) in (1, last - first + 1)
            and min(types) >= AcknowledgeType.GAP
            and max(types) <= type_max
        )


class FetchedBatch(NamedTuple):
    """One batch of the log that was read.

    Attributes:
        is_aborted: whether it is of a transaction that was aborted, for readers of committed
            records.
    """

    first_offset: int
    last_offset: int
    is_aborted: bool = False


class AcquiredRecords(NamedTuple):
    """Consecutive records that a member has now."""

    first_offset: int
    last_offset: int
    delivery_count: int


class StateWrite(NamedTuple):
    """What is to be stored of a change.

    Attributes:
        number: names the change to `write_completed`.
        start_offset: of the share partition when it was made.
        delivery_complete_count: how many records in flight are done with, this change included.
    """

    number: int
    start_offset: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class _Standing(NamedTuple):
    """How a range stands: its state, and who has it until when."""

    state: RecordState
    delivery_count: int = 0
    member_id: str = NO_MEMBER
    deadline_ms: int = NO_DEADLINE


class _InFlightBatch:
    """Records that were first handed out together (Kafka's InFlightBatch).

    Near the delivery limit it is divided; until then what came back of it goes out together.
    """

    __slots__ = ("first", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last

    def __len__(self) -> int:
        return self.last - self.first + 1


class _Range:
    """Consecutive records that stand alike.

    Attributes:
        batch: with which they were first handed out; None: they never were.
        before: how they stood before a change that is not stored yet; None: there is none.
        write: the number of that change.
    """

    __slots__ = ("batch", "before", "first", "last", "now", "write")

    def __init__(
        self,
        first: int,
        last: int,
        now: _Standing,
        batch: _InFlightBatch | None,
        before: _Standing | None = None,
        write: int = 0,
    ) -> None:
        self.first = first
        self.last = last
        self.now = now
        self.batch = batch
        self.before = before
        self.write = write

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        """Whether its records may be handed out."""
        return self.now.state is RecordState.AVAILABLE and self.before is None

    @property
    def is_locked(self) -> bool:
        """Whether a member has its records and has said nothing of them."""
        return self.now.state is RecordState.ACQUIRED

    @property
    def is_whole(self) -> bool:
        """Whether all stand alike that were first handed out together."""
        return self.batch is not None and len(self) == len(self.batch)

    def stands_like(self, other: _Range) -> bool:
        """Whether both may be one; how often a record was delivered counts until it is done."""
        if self.before is not None or other.before is not None:
            return False
        if self.now.state in TERMINAL:
            return self.now.state is other.now.state
        return self.now == other.now and self.batch is other.batch


class SharePartition:
    """The records in flight of one share partition, at the leader of the topic partition.

    Args:
        start_offset: what comes before is done with.
        batches: what is known of records after it; between them are records that were handed out
            and of which nobody has said anything.

    Attributes:
        start_offset: the first record that is not done with (SPSO).
        next_offset: the first one that was never handed out (SPEO, and one more).

    Raises:
        ValueError: the batches contradict the start offset or each other.
    """

    __slots__ = ("_last_write", "_ranges", "next_offset", "start_offset")

    def __init__(self, start_offset: int, batches: Iterable[StateBatch] = ()) -> None:
        self.start_offset = self.next_offset = start_offset
        self._ranges: list[_Range] = []
        self._last_write = 0
        for first, last, number, count in sorted(batches):
            if first < self.next_offset or last < first:
                raise ValueError(f"the batch {first}-{last} is out of order")
            if first > self.next_offset:
                self._append(self.next_offset, first - 1, None)
            self._append(first, last, _InFlightBatch(first, last))
            self._ranges[-1].now = _Standing(RecordState(number), count)
        self._move_start()

    # -- what may be fetched ----------------------------------------------------------------

    @property
    def next_fetch_offset(self) -> int:
        """The first record that may be handed out: one that came back, or a new one."""
        return next((each.first for each in self._ranges if each.is_available), self.next_offset)

    @property
    def in_flight(self) -> int:
        """How many records lie between the start and the first new one."""
        return self.next_offset - self.start_offset

    @property
    def range_count(self) -> int:
        """How many ranges they are in."""
        return len(self._ranges)

    def may_acquire(self, limits: ShareLimits) -> bool:
        """Whether anything may be handed out now."""
        return self.next_fetch_offset < self.next_offset or (
            self.in_flight < limits.record_locks_max
        )

    def locked_count(self, member_id: str) -> int:
        """How many records a member has."""
        return sum(
            len(each) for each in self._ranges if each.is_locked and each.now.member_id == member_id
        )

    @property
    def complete_count(self) -> int:
        """How many of the records in flight are done with."""
        return sum(len(each) for each in self._ranges if each.now.state in TERMINAL)

    @property
    def next_deadline_ms(self) -> int | None:
        """When the first lock expires; None while there is none."""
        return min((each.now.deadline_ms for each in self._ranges if each.is_locked), default=None)

    def standings(self) -> Iterator[tuple[int, int, RecordState, int, str]]:
        """The ranges in flight: first and last offset, state, delivery count and member."""
        for each in self._ranges:
            yield each.first, each.last, each.now.state, each.now.delivery_count, each.now.member_id

    # -- handing out ------------------------------------------------------------------------

    def acquire(
        self,
        member_id: str,
        fetch_offset: int,
        batches: Sequence[FetchedBatch],
        limits: ShareLimits,
        now_ms: int,
        *,
        records_max: int,
        batch_size: int,
        mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    ) -> list[AcquiredRecords]:
        """Give a member what may be handed out of the batches that were read.

        Args:
            fetch_offset: from which offset on the log was read: `next_fetch_offset` then.
            batches: in order; what is missing before and between them is not in the log.
            limits: the group's.
            now_ms: from which locks count.
            records_max: how many records; a batch counts whole, unless the mode forbids it. There
                are fewer near the delivery limit.
            batch_size: about how many new records to put into one element of the answer.

        Returns:
            what it has now, in the order of offsets.
        """
        if not batches or records_max <= 0 or batches[-1].last_offset < self.start_offset:
            return []
        self._archive_missing(max(fetch_offset, self.start_offset), batches[0].first_offset - 1)
        lock = _Lock(member_id, now_ms + limits.lock_ms)
        last = batches[-1].last_offset
        acquired, is_alone = self._acquire_again(batches, lock, limits, records_max, mode)
        records_max -= _count(acquired)
        room = limits.record_locks_max - self.in_flight
        if last >= self.next_offset and min(records_max, room) > 0 and not is_alone:
            acquired += self._acquire_new(batches, lock, min(records_max, room), batch_size, mode)
        aborted = [each for each in batches if each.is_aborted]
        return self._without_aborted(acquired, aborted) if aborted else acquired

    def _archive_missing(self, first: int, last: int) -> None:
        """Records that came back and are not in the log any more."""
        for each in self._ranges_in(first, min(last, self.next_offset - 1)):
            if each.is_available:
                self._take(each, RecordEvent.REMOVE)
        self._settle()

    def _acquire_again(
        self,
        batches: Sequence[FetchedBatch],
        lock: _Lock,
        limits: ShareLimits,
        records_max: int,
        mode: AcquireMode,
    ) -> tuple[list[AcquiredRecords], bool]:
        """Records that came back.

        Returns:
            what is acquired, and whether nothing else may go with it.
        """
        first = max(batches[0].first_offset, self.start_offset)
        last = min(batches[-1].last_offset, self.next_offset - 1)
        acquired: list[AcquiredRecords] = []
        left = records_max
        for batch, found in groupby(self._ranges_in(first, last), key=lambda each: each.batch):
            available = [each for each in found if each.is_available]
            if left <= 0 or not available:
                continue
            is_careful = limits.careful_from <= max(each.now.delivery_count for each in available)
            if is_careful and acquired:
                return acquired, True
            if batch is None:
                some = self._acquire_gap(batches, available[0], lock, left, mode)
            else:
                count_max = left if mode is AcquireMode.RECORD_LIMIT else len(batch)
                some = list(self._acquire_of(batch, available, lock, limits, count_max))
            acquired += some
            if is_careful:
                return acquired, True
            left -= _count(some)
        return acquired, False

    def _acquire_of(
        self,
        batch: _InFlightBatch,
        available: Iterable[_Range],
        lock: _Lock,
        limits: ShareLimits,
        count_max: int,
    ) -> Iterator[AcquiredRecords]:
        """Those of a batch that may be delivered together.

        What nobody can process has the records beside it delivered in vain as well. So the more
        often some were, the fewer go together, and one with its last chance goes alone, in time
        before others are archived with it (SharePartition.acquireSubsetBatchRecords).
        """
        taken = 0
        together_max = 0
        for each in available:
            count = each.now.delivery_count
            is_alone = limits.is_last_delivery(count)
            if is_alone and taken:
                return
            if count >= limits.careful_from and not together_max:
                together_max = max(1, len(batch) >> (count - limits.careful_from + 1))
            room = 1 if is_alone else count_max - taken
            if taken < together_max:
                room = min(room, together_max - taken)
            if len(each) > room:
                self._split_at(each.first + room)
            self._take(each, RecordEvent.ACQUIRE, lock)
            yield AcquiredRecords(each.first, each.last, each.now.delivery_count)
            taken += len(each)
            if is_alone or taken in (count_max, together_max):
                return

    def _acquire_gap(
        self,
        batches: Sequence[FetchedBatch],
        gap: _Range,
        lock: _Lock,
        records_max: int,
        mode: AcquireMode,
    ) -> list[AcquiredRecords]:
        """Records of which the state that was loaded says nothing."""
        if len(gap) > records_max:
            end = gap.first + records_max - 1
            if mode is AcquireMode.BATCH_OPTIMIZED:
                end = _end_of_batch(batches, end)
            self._split_at(end + 1)
        gap.batch = _InFlightBatch(gap.first, gap.last)
        self._take(gap, RecordEvent.ACQUIRE, lock)
        return [AcquiredRecords(gap.first, gap.last, gap.now.delivery_count)]

    def _acquire_new(
        self,
        batches: Iterable[FetchedBatch],
        lock: _Lock,
        records_max: int,
        batch_size: int,
        mode: AcquireMode,
    ) -> list[AcquiredRecords]:
        """Records that were never handed out; what the log lacks between them is archived."""
        elements: list[_Range] = []
        together: _InFlightBatch | None = None
        if mode is AcquireMode.RECORD_LIMIT:
            batch_size = records_max
        for batch in batches:
            if batch.last_offset < self.next_offset:
                continue
            if records_max <= 0:
                break
            first = max(batch.first_offset, self.next_offset)
            if first > self.next_offset:
                self._append(self.next_offset, first - 1, None)
                self._take(self._ranges[-1], RecordEvent.REMOVE)
                together = None
            last = batch.last_offset
            if mode is AcquireMode.RECORD_LIMIT:
                last = min(last, first + records_max - 1)
            if together is None or len(together) >= batch_size:
                together = _InFlightBatch(first, last)
                self._append(first, last, together)
                self._take(self._ranges[-1], RecordEvent.ACQUIRE, lock)
                elements.append(self._ranges[-1])
            else:
                together.last = elements[-1].last = last
                self.next_offset = last + 1
            records_max -= last - first + 1
            if last < batch.last_offset:
                together.last = batch.last_offset
                self._append(last + 1, batch.last_offset, together)
        acquired = [AcquiredRecords(each.first, each.last, 1) for each in elements]
        self._settle()
        return acquired

    def _without_aborted(
        self, acquired: Sequence[AcquiredRecords], aborted: Sequence[FetchedBatch]
    ) -> list[AcquiredRecords]:
        """Nobody is to read what a transaction took back."""
        result: list[AcquiredRecords] = []
        for each in acquired:
            first = each.first_offset
            for batch in aborted:
                if batch.last_offset < first or each.last_offset < batch.first_offset:
                    continue
                if first < batch.first_offset:
                    result.append(each._replace(first_offset=first, last_offset=batch[0] - 1))
                last = min(batch.last_offset, each.last_offset)
                for found in self._ranges_in(max(first, batch.first_offset), last):
                    self._take(found, RecordEvent.REJECT)
                first = last + 1
            if first <= each.last_offset:
                result.append(each._replace(first_offset=first))
        self._settle()
        return result

    # -- acknowledging ----------------------------------------------------------------------

    def acknowledge(
        self,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
        limits: ShareLimits,
        now_ms: int,
    ) -> StateWrite | None:
        """Take what a member says of its records, all of it or nothing.

        What lies before the start offset is passed over: it is done with.

        Args:
            member_id: whose records they are said to be.
            acknowledgements: each valid after the one before it.
            limits: the group's.
            now_ms: from which renewed locks count.

        Returns:
            what is to be stored; None: nothing.

        Raises:
            KafkaError: INVALID_REQUEST, there are no such records in flight;
                INVALID_RECORD_STATE, they are not this member's, or said to be done with twice.
        """
        events: list[tuple[int, int, RecordEvent]] = []
        end = NO_OFFSET
        in_flight = bisect_left(
            acknowledgements, self.start_offset, key=lambda each: each.last_offset
        )
        for each in acknowledgements[in_flight:]:
            if self.start_offset <= each.first_offset == end:
                raise _not_acquired(is_whole=False)
            events += self._events(member_id, each, limits)
            end = NO_OFFSET if each.types[-1] == AcknowledgeType.RENEW else each.last_offset
        number = self._last_write = self._last_write + 1
        lock = _Lock(member_id, now_ms + limits.lock_ms)
        changed: list[_Range] = []
        for first, last, event in events:
            for found in self._ranges_in(first, last):
                if event is RecordEvent.RENEW:
                    self._take(found, event, lock)
                else:
                    self._begin(found, _at_limit(found, event, limits), number)
                    changed.append(found)
        return self._state_write(number, changed)

    def _events(
        self, member_id: str, acknowledgement: Acknowledgement, limits: ShareLimits
    ) -> Iterator[tuple[int, int, RecordEvent]]:
        first, last, types = acknowledgement
        if last >= self.next_offset:
            which = "first" if first >= self.next_offset else "last"
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Batch record not found. The {which} offset in request is past acquired records.",
            )
        self._check_owner(member_id, max(first, self.start_offset), last)
        for begin, end, number in _runs(first, last, types):
            if number == AcknowledgeType.RENEW and not limits.may_renew:
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE,
                    "Renewing acquisition locks is not enabled for the group.",
                )
            if end >= self.start_offset:
                yield max(begin, self.start_offset), end, EVENT_OF[AcknowledgeType(number)]

    def _check_owner(self, member_id: str, first: int, last: int) -> None:
        for each in self._ranges[self._index_of(first) :]:
            if each.first > last:
                return
            if not each.is_locked:
                raise _not_acquired(is_whole=each.is_whole)
            if each.now.member_id != member_id:
                what = "batch record" if each.is_whole else "offset"
                raise KafkaError(
                    ErrorCode.INVALID_RECORD_STATE, f"Member is not the owner of {what}"
                )

    def release(self, member_id: str, limits: ShareLimits) -> StateWrite | None:
        """A member is gone: its records may be handed out to others.

        Returns:
            what is to be stored; None: it had none.
        """
        number = self._last_write = self._last_write + 1
        changed = []
        for each in self._ranges:
            if each.is_locked and each.now.member_id == member_id:
                self._begin(each, _at_limit(each, RecordEvent.RELEASE, limits), number)
                changed.append(each)
        return self._state_write(number, changed)

    def expire(self, limits: ShareLimits, now_ms: int) -> StateWrite | None:
        """Take records back whose locks have expired, at once, whether that is stored or not.

        Returns:
            what is to be stored; None: no lock has expired.
        """
        return self._take_back(
            [each for each in self._ranges if each.is_locked and each.now.deadline_ms <= now_ms],
            limits,
        )

    def expire_early(self, first: int, last: int, limits: ShareLimits) -> StateWrite | None:
        """The same with the locks of some records, whether they have expired or not: for tests.

        Args:
            first, last: offsets.
        """
        first, last = max(first, self.start_offset), min(last, self.next_offset - 1)
        return self._take_back(
            [each for each in self._ranges_in(first, last) if each.is_locked], limits
        )

    def _take_back(self, changed: Sequence[_Range], limits: ShareLimits) -> StateWrite | None:
        for each in changed:
            self._take(each, _at_limit(each, RecordEvent.RELEASE, limits))
        number = self._last_write = self._last_write + 1
        write = self._state_write(number, changed)
        self._settle()
        return write

    def write_completed(self, number: int, *, is_stored: bool) -> bool:
        """A change is stored, or cannot be: then it is as if the member had said nothing.

        Returns:
            whether there may be more to hand out now.
        """
        for each in self._ranges:
            if each.write == number and each.before is not None:
                if not is_stored:
                    each.now = each.before
                each.before = None
                each.write = 0
        self._settle()
        return is_stored

    def log_start_moved(self, log_start_offset: int) -> bool:
        """The log has lost what comes before an offset; returns whether that changes anything."""
        if log_start_offset <= self.start_offset:
            return False
        if log_start_offset >= self.next_offset:
            self._ranges.clear()
            self.next_offset = log_start_offset
        else:
            self._split_at(log_start_offset)
            del self._ranges[: self._index_of(log_start_offset)]
        self.start_offset = log_start_offset
        self._settle()
        return True

    # -- ranges -----------------------------------------------------------------------------

    def _append(self, first: int, last: int, batch: _InFlightBatch | None) -> None:
        self._ranges.append(_Range(first, last, _Standing(RecordState.AVAILABLE), batch))
        self.next_offset = last + 1

    def _index_of(self, offset: int) -> int:
        """The index of the range that an offset is in, or would be."""
        return max(bisect_right(self._ranges, offset, key=lambda each: each.first) - 1, 0)

    def _split_at(self, offset: int) -> None:
        """Have a range begin at an offset that is in flight."""
        index = self._index_of(offset)
        if index < len(self._ranges):
            found = self._ranges[index]
            if found.first < offset <= found.last:
                rest = _Range(offset, found.last, found.now, found.batch, found.before, found.write)
                found.last = offset - 1
                self._ranges.insert(index + 1, rest)

    def _ranges_in(self, first: int, last: int) -> list[_Range]:
        """The ranges from one offset to another, none of which reaches beyond."""
        if last < first or not self._ranges:
            return []
        self._split_at(first)
        self._split_at(last + 1)
        index = self._index_of(first)
        end = self._index_of(last) + 1
        return [
            each for each in self._ranges[index:end] if first <= each.first and each.last <= last
        ]

    def _take(self, each: _Range, event: RecordEvent, lock: _Lock | None = None) -> None:
        """Move a range along the table."""
        state = RECORD_TRANSITIONS.next_state(each.now.state, event)
        count = each.now.delivery_count + (event is RecordEvent.ACQUIRE)
        if lock is None:
            each.now = _Standing(state, count)
        else:
            each.now = _Standing(state, count, lock.member_id, lock.deadline_ms)

    def _begin(self, each: _Range, event: RecordEvent, number: int) -> None:
        """Move a range along the table, for good once a write is stored."""
        each.before = each.now
        each.write = number
        self._take(each, event)

    def _state_write(self, number: int, changed: Iterable[_Range]) -> StateWrite | None:
        batches = [
            StateBatch(each.first, each.last, each.now.state, each.now.delivery_count)
            for each in changed
        ]
        if not batches:
            return None
        return StateWrite(number, self.start_offset, self.complete_count, batches)

    def _settle(self) -> None:
        """Make one of ranges that stand alike, and move the start on."""
        ranges = self._ranges
        kept = ranges[:1]
        for each in ranges[1:]:
            if kept[-1].stands_like(each):
                kept[-1].last = each.last
            else:
                kept.append(each)
        self._ranges = kept
        self._move_start()

    def _move_start(self) -> None:
        """The start is the first record that is not done with."""
        done = 0
        for each in self._ranges:
            if each.now.state not in TERMINAL or each.before is not None:
                break
            done += 1
        if done:
            self.start_offset = self._ranges[done - 1].last + 1
            del self._ranges[:done]


class _Lock(NamedTuple):
    """Who gets records, and until when."""

    member_id: str
    deadline_ms: int


def _count(acquired: Iterable[AcquiredRecords]) -> int:
    return sum(last - first + 1 for first, last, _ in acquired)


def _not_acquired(*, is_whole: bool) -> KafkaError:
    what, which = ("batch", "in the acquired state") if is_whole else ("offset", "acquired")
    return KafkaError(
        ErrorCode.INVALID_RECORD_STATE,
        f"The {what} cannot be acknowledged. The {what} is not {which}.",
    )


def _at_limit(each: _Range, event: RecordEvent, limits: ShareLimits) -> RecordEvent:
    """A record that was handed out often enough does not become available again."""
    if event is RecordEvent.RELEASE and each.now.delivery_count >= limits.delivery_count_max:
        return RecordEvent.EXHAUST
    return event


def _end_of_batch(batches: Sequence[FetchedBatch], offset: int) -> int:
    """The last offset of the batch that an offset is in; itself where it is in none."""
    index = bisect_right(batches, offset, key=lambda each: each.first_offset) - 1
    return offset if index < 0 else max(offset, batches[index].last_offset)


def _runs(first: int, last: int, types: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Consecutive offsets of one type."""
    if len(types) == 1:
        yield first, last, types[0]
        return
    begin = 0
    for index in range(1, len(types) + 1):
        if index == len(types) or types[index] != types[begin]:
            yield first + begin, first + index - 1, types[begin]
            begin = index

"""One partition of a life that ends in crashes: what it was given, and what must be left of it.

Nothing here looks into files. The model knows the batches it handed in, byte for byte, what
was promised by a flush that came to its end, and which cuts were made since; from that follows
everything that a recovered log may hold.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from odradek.protocol.compression.codecs import Compression
from odradek.protocol.records import RecordBatch, build_batch, iter_records
from odradek.protocol.records.builder import RecordToBuild
from odradek.protocol.records.control import ControlRecordType, parse_end_transaction_marker
from odradek.storage import AppendOrigin, Log, LogConfig, TopicPartition

EPOCH_OF_COORDINATOR = 3
PRODUCERS = (101, 102, 103, 104)
TRANSACTIONAL = frozenset({103, 104})


@dataclass
class Producer:
    """What a client that numbers its batches knows."""

    epoch: int = 0
    next_sequence: int = 0
    in_transaction: bool = False


@dataclass
class ReplayedProducer:
    """What a log must know of a producer after these batches; fields as in the snapshot."""

    epoch: int
    last_sequence: int = -1
    last_offset: int = -1
    txn_first_offset: int = -1
    coordinator_epoch: int = -1
    offsets: list[int] = field(default_factory=list)
    """The last offsets of its batches in this epoch."""


@dataclass
class Replay:
    """What batches say of their producers, read one after the other."""

    producers: dict[int, ReplayedProducer] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """Producer id, first offset and the marker's offset of each aborted transaction."""

    def take_in(self, batch: RecordBatch) -> None:
        if batch.producer_id < 0:
            return
        state = self.producers.get(batch.producer_id)
        if state is None or state.epoch != batch.producer_epoch:
            begun = -1 if state is None else state.txn_first_offset
            coordinator = -1 if state is None else state.coordinator_epoch
            state = ReplayedProducer(
                batch.producer_epoch, txn_first_offset=begun, coordinator_epoch=coordinator
            )
            self.producers[batch.producer_id] = state
        if batch.is_control:
            (record,) = iter_records(batch)
            marker = parse_end_transaction_marker(record)
            assert marker is not None
            if marker.type is ControlRecordType.ABORT and state.txn_first_offset >= 0:
                self.aborted.append((batch.producer_id, state.txn_first_offset, batch.last_offset))
            state.txn_first_offset = -1
            state.coordinator_epoch = marker.coordinator_epoch
            return
        state.last_sequence = batch.last_sequence
        state.last_offset = batch.last_offset
        state.offsets.append(batch.last_offset)
        if batch.is_transactional and state.txn_first_offset < 0:
            state.txn_first_offset = batch.base_offset


def replay(batches: list[RecordBatch]) -> Replay:
    """Take in batches in order."""
    result = Replay()
    for batch in batches:
        result.take_in(batch)
    return result


class CrashPartition:
    """A partition under test and its model.

    Args:
        topic_partition: which.
        config: the settings of its log.
        source: decides what is written.
        topic_id: of its topic; another one after the topic was made anew.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        source: random.Random,
        topic_id: bytes,
    ) -> None:
        self.topic_partition = topic_partition
        self.config = config
        self.topic_id = topic_id
        self.deleted_topic_id: bytes | None = None
        self.random = source
        self.log: Log
        self.batches: list[RecordBatch] = []
        """All that is published, back to offset 0, also what retention has taken since."""
        self.staged: list[RecordBatch] = []
        self.other_pasts: list[list[RecordBatch]] = []
        """What it was before cuts that no flush has made final; a crash may undo them."""
        self.first_offset = 0
        """Where it began, or began anew after everything was lost."""
        self.flushed_end = 0
        """A flush that came to its end has promised everything before."""
        self.is_cutting = False
        """Whether a cut was begun and has not come to its end."""
        self.start_min = 0
        """A checkpoint on the disk says that the log begins there."""
        self.start_max = 0
        """Deletion, finished or not, was asked for up to here."""
        self.start_seen = 0
        """The log may have begun there once, and its producers' snapshots know no more."""
        self.leader_epoch = 0
        self.now_ms = 1_700_000_000_000
        self.producers = {number: Producer() for number in PRODUCERS}
        self._decisions: dict[tuple[int, int], ControlRecordType] = {}
        """How the coordinator has ended transactions; it does not change its mind in a crash."""
        self.ever_aborted: set[int] = set()
        """Offsets of records in transactions that ended so, whatever a crash took later."""
        self.cleaned_end = 0
        """Compaction has taken records before it for the sake of others before it: a leader
        never has its followers cut that, since all have it."""

    def __str__(self) -> str:
        log = self.log
        segments = [segment.base_offset for segment in log.segments] if log.segments else []
        return (
            f"{self.topic_partition} {log.log_start_offset}..{log.log_end_offset} in {segments}, "
            f"recovery point {log.recovery_point}, {self.flushed_end} promised"
        )

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.first_offset

    # --- writing -----------------------------------------------------------------------

    def stage_some(self) -> None:
        """A few batches of any kind."""
        if self.random.random() < 0.2:
            self._send_again()
        for _ in range(self.random.randint(1, 5)):
            kind = self.random.random()
            if kind < 0.4:
                self._stage(self._data_batch())
            elif kind < 0.85:
                self._stage_numbered()
            else:
                self._end_transaction()

    def flush_appends(self) -> None:
        """Write and publish what is staged."""
        self.log.flush_appends()
        self.batches += self.staged
        self.staged = []
        assert self.log.log_end_offset == self.end_offset
        self.log.high_watermark_moved(self.log.log_end_offset)

    def lead_in_a_new_epoch(self) -> None:
        """Leadership is taken up again."""
        self.leader_epoch += self.random.randint(1, 2)
        self.log.assign_epoch_start(self.leader_epoch, self.log.log_end_offset)

    def follow(self) -> None:
        """Take a leader's batches, several in one append, of several epochs."""
        parts = []
        end = self.end_offset
        for _ in range(self.random.randint(1, 4)):
            if self.random.random() < 0.2:
                self.leader_epoch += 1
            data = build_batch(
                self._records(),
                base_offset=end,
                partition_leader_epoch=self.leader_epoch,
                compression=self.random.choice(list(Compression)),
            )
            parts.append(RecordBatch(bytes(data)))
            end = parts[-1].next_offset
        joined = bytearray(b"".join(bytes(each.buffer) for each in parts))
        self.staged += parts
        self.log.append_as_follower(joined, now_ms=self.now_ms)
        self.flush_appends()

    def _stage(self, data: bytearray, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
        view = memoryview(data)
        info = self.log.append_as_leader(
            view, leader_epoch=self.leader_epoch, origin=origin, now_ms=self.now_ms
        )
        assert not info.duplicate
        batch = RecordBatch(bytes(view))
        assert batch.base_offset == info.first_offset
        self.staged.append(batch)

    def _records(self) -> list[RecordToBuild]:
        records: list[RecordToBuild] = []
        for _ in range(self.random.randint(1, 4)):
            self.now_ms += self.random.randint(-3, 10)
            key = b"key-%d" % self.random.randrange(8)
            value = self.random.randbytes(self.random.randint(0, 120))
            is_tombstone = self.config.compacts and self.random.random() < 0.1
            records.append((key, None if is_tombstone else value, self.now_ms, []))
        return records

    def _data_batch(self, **header: object) -> bytearray:
        compression = self.random.choice(list(Compression))
        return build_batch(self._records(), compression=compression, **header)  # type: ignore[arg-type]  # header is a few of build_batch's keywords

    def _stage_numbered(self) -> None:
        number = self.random.choice(PRODUCERS)
        producer = self.producers[number]
        if self.random.random() < 0.1 and not producer.in_transaction:
            producer.epoch += 1
            producer.next_sequence = 0
        data = self._data_batch(
            producer_id=number,
            producer_epoch=producer.epoch,
            base_sequence=producer.next_sequence,
            transactional=number in TRANSACTIONAL,
        )
        producer.next_sequence += RecordBatch(data).records_count
        producer.in_transaction = number in TRANSACTIONAL
        self._stage(data)

    def _send_again(self) -> None:
        """A client that heard nothing sends its last batch once more."""
        number = self.random.choice(PRODUCERS)
        for batch in reversed(self.batches):
            if batch.producer_id == number and not batch.is_control:
                break
        else:
            return
        state = self.log.producers.get(number)
        if state.batches and state.batches[-1].last_offset == batch.last_offset:
            as_sent = bytes(8) + bytes(batch.buffer[8:])
            info = self.log.append_as_leader(
                as_sent, leader_epoch=self.leader_epoch, now_ms=self.now_ms
            )
            assert info.duplicate
            assert info.first_offset in {
                each.base_offset
                for each in self.batches
                if each.producer_id == number and each.base_sequence == batch.base_sequence
            }

    def _end_transaction(self) -> None:
        open_ones = [each for each in PRODUCERS if self.producers[each].in_transaction]
        if not open_ones:
            return
        number = self.random.choice(open_ones)
        begun = (number, self.log.producers.get(number).current_txn_first_offset)
        kind = self._decisions.setdefault(begun, self.random.choice(list(ControlRecordType)))
        marker = build_batch(
            [
                (
                    b"\0\0" + kind.to_bytes(2, "big"),
                    b"\0\0" + EPOCH_OF_COORDINATOR.to_bytes(4, "big"),
                    self.now_ms,
                    [],
                )
            ],
            producer_id=number,
            producer_epoch=self.producers[number].epoch,
            transactional=True,
            control=True,
        )
        self.producers[number].in_transaction = False
        self._stage(marker, AppendOrigin.COORDINATOR)

    # --- cutting -----------------------------------------------------------------------

    def truncate(self, offset: int) -> None:
        """Drop batches from `offset` on, as a follower does; a crash may bring them back."""
        kept = [batch for batch in self.batches if batch.last_offset < offset]
        if len(kept) < len(self.batches):
            self.other_pasts.append(self.batches)
            self.batches = kept
            self.flushed_end = min(self.flushed_end, self.end_offset)
            self.start_min = min(self.start_min, self.end_offset)
            self.ever_aborted = {each for each in self.ever_aborted if each < self.end_offset}

    def truncate_fully(self, offset: int) -> None:
        """Begin at another offset with nothing."""
        self.other_pasts.append(self.batches)
        self.batches = []
        self.first_offset = offset
        self.flushed_end = 0
        self.start_min = min(self.start_min, offset)
        self.may_start_at(max(self.start_max, offset))

    def begin_anew(self, topic_id: bytes) -> None:
        """Another topic takes the place of this one."""
        self.deleted_topic_id = self.topic_id
        self.topic_id = topic_id
        self.batches = []
        self.other_pasts = []
        self.first_offset = self.flushed_end = 0
        self.start_min = self.start_max = self.start_seen = 0
        self.leader_epoch = self.cleaned_end = 0
        self.ever_aborted.clear()
        self._decisions.clear()
        self.producers = {number: Producer() for number in PRODUCERS}

    def refused(self) -> None:
        """The disk was full: nothing of what was staged has been, unless a crash undoes the cut."""
        self.other_pasts.append(self.batches + self.staged)
        self.staged = []
        assert self.log.log_end_offset == self.end_offset
        self.resume_producers()

    def promised(self, offset: int) -> None:
        """A flush up to `offset` came to its end: no cut before it can be undone."""
        self.flushed_end = max(self.flushed_end, offset)
        self.other_pasts.clear()

    # --- after a crash -----------------------------------------------------------------

    def candidates(self, *, lost_power: bool) -> list[list[RecordBatch]]:
        """Every history of which the recovered log may be a part."""
        last = self.other_pasts if lost_power else self.other_pasts[-1:]
        return [self.batches + self.staged, *last]

    def may_start_at(self, offset: int) -> None:
        """Deletion up to an offset is asked for."""
        self.start_max = offset
        self.start_seen = max(self.start_seen, offset)

    def go_on_from(self, history: list[RecordBatch], end_offset: int, *, lost_power: bool) -> None:
        """The log came back as this; clients go on from there."""
        if lost_power:
            self.other_pasts = []
        self.batches = [batch for batch in history if batch.next_offset <= end_offset]
        if end_offset == self.log.segments.first.base_offset != self.end_offset:
            self.batches = []
            self.first_offset = end_offset
        self.staged = []
        self.is_cutting = False
        self.ever_aborted = {offset for offset in self.ever_aborted if offset < end_offset}
        self.leader_epoch = max(
            [self.leader_epoch, *(each.partition_leader_epoch for each in self.batches)]
        )

    def resume_producers(self) -> None:
        """Clients go on behind the last batch of theirs that the log knows of."""
        for number in PRODUCERS:
            state = self.log.producers.published.get(number)
            self.producers[number] = Producer(
                state.producer_epoch if state else 0,
                state.last_sequence + 1 if state else 0,
                state is not None and state.current_txn_first_offset >= 0,
            )

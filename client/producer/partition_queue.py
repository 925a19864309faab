"""The batches of one partition, in order, and the sequence numbers that keep them so.

Kafka's deque of a partition in `RecordAccumulator` together with its `TxnPartitionEntry`. A batch
gets its sequence number when it is first sent (KIP-98), and not before the fifth of those numbered
before it is settled: a leader knows the last five batches of a producer (`ProducerStateEntry`), so
one that is sent again is known to it if it is in the log. It goes alone and before all others, and
so does the first of a sequence: a leader that has nothing of a producer yet takes any number, and
would take the second where the first was refused. (Kafka's producer counts only what is in flight;
a batch that waits to be sent again while others go may be unknown to the leader when it comes, and
fails. So does a first one that was overtaken.)

When the sequence cannot be continued, since a record in it failed or nobody knows whether it is in
the log, the batches that are left are numbered again from 0 under a later epoch of the producer
(KIP-360). That waits until nothing is in flight, and until the batches before the gap are in the
log or given up: one of them may be there already, its answer lost, and under another number it
would be there twice. (Kafka's producer numbers them all anew at once.)
"""

from __future__ import annotations

from collections import deque

from ...protocol.records.batch import SEQUENCE_MASK
from .producer_batch import NO_IDENTITY, ProducerBatch, ProducerIdentity

REMEMBERED_BATCHES = 5
"""Batches of a producer that a leader knows again (`ProducerStateEntry`)."""


class PartitionQueue:
    """What one partition has yet to get.

    Args:
        topic: of the partition.
        partition: its index.
        in_flight_max: how many of its batches may be unanswered; one keeps the order without
            sequence numbers.
        is_idempotent: whether batches get sequence numbers.

    Attributes:
        waiting: to be sent, the first of them first.
        in_flight: sent and not answered.
        has_gap: whether the sequence has a gap that only a new epoch can close.
        has_unknown_outcome: whether a batch of the sequence was given up after it was sent.
    """

    __slots__ = (
        "_behind_gap",
        "_in_flight_max",
        "_is_idempotent",
        "_last_acked_next",
        "_latest_ends",
        "_next_sequence",
        "_sequenced",
        "has_gap",
        "has_unknown_outcome",
        "identity",
        "in_flight",
        "partition",
        "topic",
        "waiting",
    )

    def __init__(
        self, topic: str, partition: int, *, in_flight_max: int, is_idempotent: bool
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.identity = NO_IDENTITY
        self.has_gap = False
        self.has_unknown_outcome = False
        self._in_flight_max = in_flight_max
        self._is_idempotent = is_idempotent
        self._next_sequence = 0
        self._last_acked_next = 0
        """The sequence number after the last record that is known to be in the log."""
        self._latest_ends: deque[int] = deque(maxlen=REMEMBERED_BATCHES)
        """`next_sequence` of the batches that got their numbers last."""
        self._sequenced: list[ProducerBatch] = []
        """Batches that have a number and are neither in the log nor given up, by their numbers."""
        self._behind_gap: list[ProducerBatch] = []
        """Those that follow a gap, so that no leader has taken them."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        return not self.waiting and not self.in_flight

    def may_send(self, identity: ProducerIdentity) -> bool:
        """Whether the first waiting batch may be sent, as far as the order is concerned.

        Args:
            identity: the producer's now; `NO_IDENTITY` while it has none.
        """
        if len(self.in_flight) >= self._in_flight_max:
            return False
        if not self._is_idempotent:
            return True
        if identity == NO_IDENTITY:
            return False
        head = self.waiting[0]
        if head.has_sequence:
            return self.is_first_of_sequence(head)
        if self.has_gap or self.has_unknown_outcome or self._is_window_full:
            return False
        if self._sequenced and self._last_acked_next == 0:
            return False  # the leader may not know the producer yet
        return self.identity == identity or not (self._sequenced or self.in_flight)

    def take(self, identity: ProducerIdentity) -> ProducerBatch:
        """The first waiting batch, to be sent now; `may_send` said so."""
        batch = self.waiting.popleft()
        batch.close()
        batch.attempts += 1
        self.in_flight.append(batch)
        if self._is_idempotent and not batch.has_sequence:
            if self.identity != identity:
                self._begin_sequence(identity)
            self._number(batch)
            self._sequenced.append(batch)
        return batch

    def answered(self, batch: ProducerBatch) -> None:
        """The request that a batch was in has ended, in one way or another."""
        self.in_flight.remove(batch)

    def acknowledged(self, batch: ProducerBatch) -> None:
        """A batch is in the log."""
        self._forget(batch)
        is_later = _is_after(batch.next_sequence, self._last_acked_next)
        if batch.identity == self.identity and is_later:
            self._last_acked_next = batch.next_sequence

    def send_again(self, batch: ProducerBatch) -> None:
        """Put a batch back, in front of what was sent after it."""
        self._insert([batch])

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Put the parts of a batch in its place."""
        for numbered in (self._sequenced, self._behind_gap):
            if batch in numbered:
                at = numbered.index(batch)
                numbered[at : at + 1] = parts
        self._insert(parts)

    def given_up(self, batch: ProducerBatch, *, is_refused: bool) -> None:
        """A batch has failed.

        Args:
            is_refused: whether the broker said that it is not in the log; otherwise nobody knows,
                if it was sent at all.
        """
        if batch in self.waiting:
            self.waiting.remove(batch)
        if batch in self._sequenced:
            if is_refused:
                self.note_gap(batch)
            else:
                self.has_unknown_outcome = True
        self._forget(batch)

    def note_gap(self, batch: ProducerBatch) -> None:
        """The sequence cannot be continued at a batch."""
        self.has_gap = True
        if batch in self._sequenced:
            at = self._sequenced.index(batch)
            self._behind_gap[:0] = self._sequenced[at:]
            del self._sequenced[at:]

    def is_behind_gap(self, batch: ProducerBatch) -> bool:
        """Whether a batch waits for a number in another epoch."""
        return batch in self._behind_gap

    def is_next_in_log(self, batch: ProducerBatch) -> bool:
        """Whether a batch follows the last one that is known to be in the log."""
        return batch.identity != self.identity or batch.base_sequence == self._last_acked_next

    def is_first_of_sequence(self, batch: ProducerBatch) -> bool:
        """Whether all that was numbered before a batch is in the log or given up."""
        return bool(self._sequenced) and self._sequenced[0] is batch

    def resolve(self) -> bool:
        """Look whether the outcome that nobody knew is known now.

        Once nothing of the sequence is left, either a later batch is in the log, and so is the
        one whose outcome was unknown; or the sequence must begin again. Returns whether it must.
        """
        if not self.has_unknown_outcome or self._sequenced or self.in_flight:
            return False
        self.has_unknown_outcome = False
        return self._last_acked_next != self._next_sequence

    @property
    def can_renumber(self) -> bool:
        """Whether there is a gap, and all that was sent before it has its outcome."""
        return self.has_gap and not self.in_flight and not self._sequenced

    def renumber(self, identity: ProducerIdentity) -> None:
        """Begin the sequence again under a new identity; `can_renumber` said so."""
        self.has_gap = self.has_unknown_outcome = False
        self._begin_sequence(identity)
        self._sequenced, self._behind_gap = self._behind_gap, []
        for batch in self._sequenced:
            self._number(batch)

    def forget_sequence(self) -> None:
        """The next batch begins a sequence, whatever was before."""
        self.has_gap = self.has_unknown_outcome = False
        self.identity = NO_IDENTITY
        self._sequenced.clear()
        self._behind_gap.clear()

    # --- Inside ------------------------------------------------------------------------------

    @property
    def _is_window_full(self) -> bool:
        """Whether a leader that takes one batch more may forget one that is not settled."""
        ends = self._latest_ends
        if not self._sequenced or len(ends) < REMEMBERED_BATCHES:
            return False
        return not _is_after(self._sequenced[0].next_sequence, ends[0])

    def _begin_sequence(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self._next_sequence = self._last_acked_next = 0
        self._latest_ends.clear()

    def _number(self, batch: ProducerBatch) -> None:
        batch.set_sequence(self.identity, self._next_sequence)
        self._next_sequence = batch.next_sequence
        self._latest_ends.append(batch.next_sequence)

    def _forget(self, batch: ProducerBatch) -> None:
        for numbered in (self._sequenced, self._behind_gap):
            if batch in numbered:
                numbered.remove(batch)

    def _insert(self, batches: list[ProducerBatch]) -> None:
        """Put batches where their sequence numbers belong; in front, if they have none."""
        if not self._is_idempotent:
            self.waiting.extendleft(reversed(batches))
            return
        order = {
            id(batch): number for number, batch in enumerate([*self._sequenced, *self._behind_gap])
        }
        numbered = [batch for batch in self.waiting if id(batch) in order]
        others = [batch for batch in self.waiting if id(batch) not in order]
        numbered = sorted([*numbered, *batches], key=lambda batch: order[id(batch)])
        self.waiting = deque([*numbered, *others])


def _is_after(sequence: int, other: int) -> bool:
    """Whether a sequence number comes after another; they wrap around."""
    return 0 < (sequence - other) & SEQUENCE_MASK <= SEQUENCE_MASK // 2

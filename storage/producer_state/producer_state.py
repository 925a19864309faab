"""What a log remembers of one producer (Kafka's ProducerStateEntry, KIP-98)."""

from __future__ import annotations

from ...common.named_tuple import NamedTuple
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from ...protocol.records.batch import SEQUENCE_MASK

BATCHES_RETAINED = 5
"""As many as a producer may have in flight, so each can be recognised when sent again."""


class BatchMetadata(NamedTuple):
    """One batch a producer appended."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    """Last offset minus first, and likewise of the sequences."""
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The first record's sequence number; they wrap around after 2^31 - 1."""
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK

    @property
    def first_offset(self) -> int:
        """The first record's offset."""
        return self.last_offset - self.offset_delta


class ProducerState(NamedTuple):
    """A producer's epoch and its last batches. Never changed, only replaced.

    So what an append stages can be dropped again when the disk refuses it.
    """

    producer_epoch: int = NO_PRODUCER_EPOCH
    batches: tuple[BatchMetadata, ...] = ()
    """The oldest first, five at most."""
    last_timestamp: int = NO_TIMESTAMP
    coordinator_epoch: int = -1
    """Of the transaction coordinator that last ended a transaction."""
    current_txn_first_offset: int = -1
    """Where its open transaction begins, or -1."""

    @property
    def last_sequence(self) -> int:
        """Of the last batch, or -1."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        """Whether its producer wrote nothing for so long and has no transaction open."""
        return self.current_txn_first_offset < 0 and now_ms - self.last_timestamp >= expiration_ms

    def find_batch(self, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The remembered batch of exactly these sequence numbers."""
        for batch in self.batches:
            if batch.last_sequence == last_sequence and batch.first_sequence == first_sequence:
                return batch
        return None


UNKNOWN_PRODUCER = ProducerState()

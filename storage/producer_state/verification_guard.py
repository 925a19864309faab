"""Verification that a producer's transaction has this log as a partition (KIP-890).

The first batch that a transaction writes to a log is accepted only after the transaction
coordinator has confirmed that the partition was added to it. A guard is created when the
verification starts, and the batch carries it. A marker in between removes the guard, so an answer
that is late by a whole transaction cannot let a batch in. Source: Kafka's
VerificationGuard and VerificationStateEntry.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError


class VerificationGuard:
    """One verification; equal to none but itself."""

    __slots__ = ()


NOT_REQUIRED = VerificationGuard()
"""The guard of batches that need no verification."""


class VerificationStateEntry:
    """What is known of a producer while it is verified.

    Attributes:
        guard: of this verification.
        started_ms: wall time of its first batch.
        lowest_sequence: of the batches of this epoch; no batch with a later one may come first.
        producer_epoch: the latest of those batches.
        supports_epoch_bump: whether each of the producer's transactions has an epoch of its own.
    """

    __slots__ = ("guard", "lowest_sequence", "producer_epoch", "started_ms", "supports_epoch_bump")

    def __init__(
        self, base_sequence: int, producer_epoch: int, supports_epoch_bump: bool, now_ms: int
    ) -> None:
        self.guard = VerificationGuard()
        self.started_ms = now_ms
        self.lowest_sequence = base_sequence
        self.producer_epoch = producer_epoch
        self.supports_epoch_bump = supports_epoch_bump

    def note(self, base_sequence: int, producer_epoch: int) -> None:
        """Another batch is to be verified: a lower sequence, or a newer epoch, must come first."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = base_sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, base_sequence)


class Verifications:
    """The producers of one log that are being verified, by producer id."""

    __slots__ = ("_by_producer_id",)

    def __init__(self) -> None:
        self._by_producer_id: dict[int, VerificationStateEntry] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._by_producer_id)

    def start(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        *,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> VerificationGuard:
        """The guard that a batch has to carry once its producer is verified."""
        verification = self._by_producer_id.get(producer_id)
        if verification is None:
            verification = VerificationStateEntry(
                base_sequence, producer_epoch, supports_epoch_bump, now_ms
            )
            self._by_producer_id[producer_id] = verification
        else:
            verification.note(base_sequence, producer_epoch)
        return verification.guard

    def check(
        self, producer_id: int, guard: VerificationGuard | None
    ) -> VerificationStateEntry | None:
        """Whether a producer without a transaction here may begin one.

        Returns:
            What is known of the verification; None where none is required.

        Raises:
            KafkaError: INVALID_TXN_STATE, it was not verified, or what was verified has ended.
        """
        verification = self._by_producer_id.get(producer_id)
        if guard is NOT_REQUIRED:
            return verification
        if verification is None or guard is not verification.guard:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction"
            )
        return verification

    def end(self, producer_id: int, guard: VerificationGuard | None = None) -> None:
        """A batch or a marker was appended, or the verification failed."""
        verification = self._by_producer_id.get(producer_id)
        if verification is not None and (guard is None or guard is verification.guard):
            del self._by_producer_id[producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those that started so long ago."""
        expired = [
            producer_id
            for producer_id, verification in self._by_producer_id.items()
            if now_ms - verification.started_ms >= expiration_ms
        ]
        for producer_id in expired:
            del self._by_producer_id[producer_id]

"""A transactional id: what is kept of it, and the change that is on its way.

`Transaction` is one version of it, exactly what one record of `__transaction_state` holds;
it is never changed, its methods make the next out of it. `TransactionMetadata` is the place
where the newest stands, and with it what lives in memory alone. Source: Kafka's
TransactionMetadata and TxnTransitMetadata, as of 4.3.
"""

from __future__ import annotations

from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from ...common.topic_partition import TopicPartition
from ...metadata.features import SECOND_GENERATION
from .states import TRANSITIONS, TransactionEvent, TransactionState

PRODUCER_EPOCH_MAX = 32_767
LAST_USABLE_EPOCH = PRODUCER_EPOCH_MAX - 1
"""No producer works under the highest epoch, so that it can always be fenced by the next."""

NO_TOPIC_PARTITIONS: frozenset[TopicPartition] = frozenset()


class Transaction(NamedTuple):
    """A transactional id as one record keeps it.

    Attributes:
        producer_id: under which its producer writes.
        timeout_ms: how long a transaction may be open.
        last_update_ms: when the record was made; an id unused for long is forgotten.
        producer_epoch: -1 until the first InitProducerId is in the log.
        last_producer_epoch: the one before, if its producer may retry; not stored.
        state: where it stands.
        partitions: in which the transaction has, or may have, records.
        start_ms: when the transaction began, -1 if none has.
        previous_producer_id: the id before the last change, to know a retry by.
        next_producer_id: the id that takes over once the markers are written, if the
            epochs of this one are used up; else -1.
        client_version: of the protocol that the producer last spoke: 0 or 2 (KIP-890).
    """

    producer_id: int
    timeout_ms: int
    last_update_ms: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = NO_TOPIC_PARTITIONS
    start_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether its producer needs another id to go on."""
        return self.producer_epoch >= LAST_USABLE_EPOCH

    # -- the next version ---------------------------------------------------------------------
    #
    # Each remembers the producer id it found, so that a request that comes again is known.

    def initialized(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transaction:
        """The next epoch of the same producer id.

        Args:
            expected_epoch: the epoch that the producer has, if it goes on after an error
                (KIP-360); None for one that starts.

        Raises:
            KafkaError: PRODUCER_FENCED, another producer has taken over since.
        """
        epoch = self.producer_epoch
        if expected_epoch is None:
            next_epoch, last_epoch = epoch + 1, NO_PRODUCER_EPOCH
        elif epoch in (NO_PRODUCER_EPOCH, expected_epoch):
            next_epoch, last_epoch = epoch + 1, epoch
        elif expected_epoch == self.last_producer_epoch:
            next_epoch, last_epoch = epoch, self.last_producer_epoch  # it retries
        else:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        return self._emptied(self.producer_id, next_epoch, last_epoch, timeout_ms, now_ms)

    def rotated(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, may_retry: bool
    ) -> Transaction:
        """Epoch 0 of another producer id, as those of this one are used up.

        Args:
            may_retry: whether the producer sent its epoch, which is remembered then.
        """
        last_epoch = self.producer_epoch if may_retry else NO_PRODUCER_EPOCH
        return self._emptied(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _emptied(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> Transaction:
        return self._replace(
            state=TRANSITIONS.next_state(self.state, TransactionEvent.INITIALIZED),
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            partitions=NO_TOPIC_PARTITIONS,
            start_ms=NO_TIMESTAMP,
            last_update_ms=now_ms,
        )

    def with_partitions(
        self, added: frozenset[TopicPartition], now_ms: int, client_version: int
    ) -> Transaction:
        """The transaction with more partitions, opened by them if it is not open."""
        is_begun = (
            TRANSITIONS.next_state(self.state, TransactionEvent.PARTITIONS_ADDED) is not self.state
        )
        return self._replace(
            state=TRANSITIONS.next_state(self.state, TransactionEvent.PARTITIONS_ADDED),
            previous_producer_id=self.producer_id,
            partitions=self.partitions | added,
            start_ms=now_ms if is_begun else self.start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self,
        event: TransactionEvent,
        client_version: int,
        now_ms: int,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> Transaction:
        """The outcome decided: from here on markers are written, whoever crashes.

        Args:
            event: COMMIT_REQUESTED, ABORT_REQUESTED or EMPTY_ABORT_REQUESTED.
            client_version: in the second generation the markers carry the next epoch, so
                that nothing written late can join the transaction.
            next_producer_id: of the second generation, where the epochs are used up.
        """
        epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
        if client_version >= SECOND_GENERATION:
            epoch, last_epoch = min(epoch + 1, PRODUCER_EPOCH_MAX), epoch
        is_of_nothing = event is TransactionEvent.EMPTY_ABORT_REQUESTED
        return self._replace(
            state=TRANSITIONS.next_state(self.state, event),
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            start_ms=now_ms if is_of_nothing else self.start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def with_fencing_epoch(self, *, has_failed_before: bool) -> Transaction:
        """A transaction of the first generation under the epoch that fences its producer.

        Args:
            has_failed_before: an earlier try took the epoch already.
        """
        epoch = self.producer_epoch
        if not has_failed_before:
            epoch = min(epoch + 1, PRODUCER_EPOCH_MAX)
        return self._replace(producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)

    def fenced(self, client_version: int, now_ms: int, next_producer_id: int) -> Transaction:
        """The open transaction aborted in its producer's place.

        Args:
            client_version: the generation to abort it in, 0 or 2.
            next_producer_id: see `prepared`.
        """
        between = self._replace(state=TRANSITIONS.next_state(self.state, TransactionEvent.FENCED))
        return between.prepared(
            TransactionEvent.ABORT_REQUESTED, client_version, now_ms, next_producer_id
        )

    def completed(self, now_ms: int) -> Transaction:
        """All markers are written: at rest again, under the next producer id if there is one."""
        producer_id, epoch = self.producer_id, self.producer_epoch
        if self.client_version >= SECOND_GENERATION and self.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = self.next_producer_id, 0
        return self._replace(
            state=TRANSITIONS.next_state(self.state, TransactionEvent.MARKERS_WRITTEN),
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            producer_epoch=epoch,
            partitions=NO_TOPIC_PARTITIONS,
            last_update_ms=now_ms,
        )


class TransactionMetadata:
    """One transactional id of a shard.

    Attributes:
        name: the id itself.
        partition: of `__transaction_state`, that keeps it.
        transaction: what the log says of it.
        pending: the state it is about to be in, while that is not in the log yet.
        open_since_ms: the monotonic time from which its open transaction's timeout counts. The
            log holds wall time, which Kafka goes by; a clock that is set would abort every open
            transaction, or none.
        has_failed_fence: an epoch was taken to fence its producer, but may not be in the
            log; as no client has seen it, the next try takes the same.
    """

    __slots__ = (
        "has_failed_fence",
        "name",
        "open_since_ms",
        "partition",
        "pending",
        "transaction",
    )

    def __init__(self, name: str, partition: int, transaction: Transaction) -> None:
        self.name = name
        self.partition = partition
        self.transaction = transaction
        self.pending: TransactionState | None = None
        self.open_since_ms = 0
        self.has_failed_fence = False

"""A transactional id: what is kept of it, and the change that is on its way.

`Transaction` is one version of it, exactly what one record of `__transaction_state` holds;
it is never changed, `steps.py` makes the next out of it. `TransactionalId` is the place
where the newest stands, and with it what lives in memory alone. Source: Kafka's
TransactionMetadata.
"""

from __future__ import annotations

from typing import NamedTuple

from ....common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from ....common.topic_partition import TopicPartition
from ..states import TransactionState

PRODUCER_EPOCH_MAX = 32_767
LAST_USABLE_EPOCH = PRODUCER_EPOCH_MAX - 1
"""No producer works under the highest epoch, so that it can always be fenced by the next."""

NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


class Transaction(NamedTuple):
    """A transactional id as one record keeps it.

    Attributes:
        producer_id: under which its producer writes.
        timeout_ms: how long a transaction may be open.
        last_update_ms: when the record was made; an id unused for long is forgotten.
        producer_epoch: -1 until the first InitProducerId is in the log.
        last_producer_epoch: the one before, if its producer may ask again; not stored.
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
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    start_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether its producer needs another id to go on."""
        return self.producer_epoch >= LAST_USABLE_EPOCH


class TransactionalId:
    """One transactional id of a shard.

    Attributes:
        name: the id itself.
        partition: of `__transaction_state`, that keeps it.
        transaction: what the log says of it.
        pending: the state it is about to be in, while that is not in the log yet.
        has_failed_fence: an epoch was taken to fence its producer, but may not be in the
            log; as nobody was told of it, the next try takes the same.
    """

    __slots__ = ("has_failed_fence", "name", "partition", "pending", "transaction")

    def __init__(self, name: str, partition: int, transaction: Transaction) -> None:
        self.name = name
        self.partition = partition
        self.transaction = transaction
        self.pending: TransactionState | None = None
        self.has_failed_fence = False

"""What brokers say about transactions, and about the producers that write them."""

from __future__ import annotations

from typing import NamedTuple

from .group_descriptions import TopicPartition


class TransactionListing(NamedTuple):
    """A transactional id as its coordinator lists it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator: int


class TransactionDescription(NamedTuple):
    """A transactional id, and the transaction it is in.

    Attributes:
        started_ms: since the epoch; None where no transaction is open.
        partitions: those that have yet to get their markers.
    """

    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: frozenset[TopicPartition]


class ProducerOfPartition(NamedTuple):
    """A producer that a partition's leader remembers.

    Attributes:
        last_timestamp: of the last record, in milliseconds; -1 where there is none.
        coordinator_epoch: of the last marker; -1 where there is none.
        open_since_offset: where its open transaction begins; None where none is open.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    open_since_offset: int | None


class HangingTransaction(NamedTuple):
    """A transaction that is open in a partition, and that no coordinator is going to end."""

    partition: TopicPartition
    producer: ProducerOfPartition
    transactional_id: str | None

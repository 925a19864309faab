"""Transactions described one by one, or listed with filters.

Source: Kafka's TransactionCoordinator.handleDescribeTransactions and
TransactionStateManager.listTransactionStates; KIP-664, KIP-994 (duration), KIP-1152 (pattern).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from ...common.errors import ErrorCode
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from ...common.topic_partition import TopicPartition
from ...runtime.steps import Steps
from .states import BY_SHOWN, TransactionState
from .transaction import NO_TOPIC_PARTITIONS, TransactionMetadata

NO_DURATION = -1
"""No filter by duration; so is any other negative number."""


class DescribedTransaction(NamedTuple):
    """One transactional id, or why there is nothing to tell of it."""

    name: str
    error: ErrorCode
    state: str = ""
    timeout_ms: int = 0
    start_ms: int = NO_TIMESTAMP
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    partitions: frozenset[TopicPartition] = NO_TOPIC_PARTITIONS


class ListedTransaction(NamedTuple):
    """One transactional id in a list."""

    name: str
    producer_id: int
    state: str


class TransactionFilter(NamedTuple):
    """Which transactional ids are to be listed: those that pass all filters.

    Attributes:
        states: shown names; none lets all pass.
        producer_ids: none lets all pass.
        duration_ms: begun more than so long ago; negative lets all pass.
        matches: tells of an id whether it passes; None lets all pass.
    """

    states: Collection[str] = ()
    producer_ids: Collection[int] = ()
    duration_ms: int = NO_DURATION
    matches: Callable[[str], bool] | None = None


def describe(
    known: TransactionMetadata, missing: frozenset[TopicPartition] | None
) -> DescribedTransaction:
    """A transactional id as it stands.

    Args:
        missing: the partitions that have no marker yet, while markers are written: only those
            still take part in the transaction.
    """
    now = known.transaction
    return DescribedTransaction(
        known.name,
        ErrorCode.NONE,
        now.state.shown,
        now.timeout_ms,
        now.start_ms,
        now.producer_id,
        now.producer_epoch,
        now.partitions if missing is None else now.partitions & missing,
    )


def unknown_states(requested: TransactionFilter) -> Steps[list[str]]:
    """The states that the filter names and that there are not."""
    unknown = []
    for name in requested.states:
        if name not in BY_SHOWN:
            unknown.append(name)
        yield
    return unknown


def passing(
    ids: Iterable[TransactionMetadata], requested: TransactionFilter, now_ms: int
) -> Steps[list[ListedTransaction]]:
    """The transactional ids that pass the filter."""
    states: set[TransactionState] = {
        BY_SHOWN[name] for name in requested.states if name in BY_SHOWN
    }
    producer_ids = set(requested.producer_ids)
    passed = []
    for known in ids:
        yield
        now = known.transaction
        if (
            (not requested.states or now.state in states)
            and (not producer_ids or now.producer_id in producer_ids)
            and (requested.duration_ms < 0 or now_ms - now.start_ms > requested.duration_ms)
            and (requested.matches is None or requested.matches(known.name))
        ):
            passed.append(ListedTransaction(known.name, now.producer_id, now.state.shown))
    return passed

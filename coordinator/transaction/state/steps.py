"""From one version of a transactional id to the next: pure functions on `Transaction`.

None of them looks at a pending change, none appends: that is done by the verbs. Each
remembers the producer id it found, so that a request that comes again is known. Source:
the `prepare...` methods of Kafka's TransactionMetadata, as of 4.3.
"""

from __future__ import annotations

from ....common.errors import ErrorCode, KafkaError
from ....common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_TIMESTAMP
from ....common.topic_partition import TopicPartition
from ....metadata.features import SECOND_GENERATION
from ..states import TRANSITIONS, TransactionEvent
from .transaction import NO_PARTITIONS, PRODUCER_EPOCH_MAX, Transaction


def initialized(
    before: Transaction, timeout_ms: int, expected_epoch: int | None, now_ms: int
) -> Transaction:
    """The next epoch of the same producer id.

    Args:
        expected_epoch: the epoch that the producer has, if it goes on after an error
            (KIP-360); None for one that starts.

    Raises:
        KafkaError: PRODUCER_FENCED, another producer has taken over since.
    """
    epoch = before.producer_epoch
    if expected_epoch is None:
        next_epoch, last_epoch = epoch + 1, NO_PRODUCER_EPOCH
    elif epoch in (NO_PRODUCER_EPOCH, expected_epoch):
        next_epoch, last_epoch = epoch + 1, epoch
    elif expected_epoch == before.last_producer_epoch:
        next_epoch, last_epoch = epoch, before.last_producer_epoch  # it asks again
    else:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return _empty(before, before.producer_id, next_epoch, last_epoch, timeout_ms, now_ms)


def rotated(
    before: Transaction, producer_id: int, timeout_ms: int, now_ms: int, *, may_ask_again: bool
) -> Transaction:
    """Epoch 0 of another producer id, as those of this one are used up.

    Args:
        may_ask_again: whether the producer told its epoch, which is remembered then.
    """
    last_epoch = before.producer_epoch if may_ask_again else NO_PRODUCER_EPOCH
    return _empty(before, producer_id, 0, last_epoch, timeout_ms, now_ms)


def _empty(
    before: Transaction, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
) -> Transaction:
    return before._replace(
        state=TRANSITIONS.next_state(before.state, TransactionEvent.INITIALIZED),
        producer_id=producer_id,
        previous_producer_id=before.producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=NO_PARTITIONS,
        start_ms=NO_TIMESTAMP,
        last_update_ms=now_ms,
    )


def with_partitions(
    before: Transaction, added: frozenset[TopicPartition], now_ms: int, client_version: int
) -> Transaction:
    """The transaction with more partitions, opened by them if it is not open."""
    is_begun = (
        TRANSITIONS.next_state(before.state, TransactionEvent.PARTITIONS_ADDED) is not before.state
    )
    return before._replace(
        state=TRANSITIONS.next_state(before.state, TransactionEvent.PARTITIONS_ADDED),
        previous_producer_id=before.producer_id,
        partitions=before.partitions | added,
        start_ms=now_ms if is_begun else before.start_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def prepared(
    before: Transaction,
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
    epoch, last_epoch = before.producer_epoch, before.last_producer_epoch
    if client_version >= SECOND_GENERATION:
        epoch, last_epoch = min(epoch + 1, PRODUCER_EPOCH_MAX), epoch
    is_of_nothing = event is TransactionEvent.EMPTY_ABORT_REQUESTED
    return before._replace(
        state=TRANSITIONS.next_state(before.state, event),
        previous_producer_id=before.producer_id,
        next_producer_id=next_producer_id,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        start_ms=now_ms if is_of_nothing else before.start_ms,
        last_update_ms=now_ms,
        client_version=client_version,
    )


def fence_epoch(before: Transaction, *, has_failed_before: bool) -> int:
    """The epoch that fences the producer of a first-generation transaction.

    Args:
        has_failed_before: an earlier try took it already.
    """
    if has_failed_before:
        return before.producer_epoch
    return min(before.producer_epoch + 1, PRODUCER_EPOCH_MAX)


def fenced(
    before: Transaction, client_version: int, now_ms: int, next_producer_id: int
) -> Transaction:
    """The open transaction aborted in its producer's place.

    Args:
        before: of the first generation, under the fencing epoch already.
        client_version: the generation to abort it in, 0 or 2.
        next_producer_id: see `prepared`.
    """
    between = before._replace(state=TRANSITIONS.next_state(before.state, TransactionEvent.FENCED))
    return prepared(
        between, TransactionEvent.ABORT_REQUESTED, client_version, now_ms, next_producer_id
    )


def completed(before: Transaction, now_ms: int) -> Transaction:
    """All markers are written: at rest again, under the next producer id if there is one."""
    producer_id, epoch = before.producer_id, before.producer_epoch
    if before.client_version >= SECOND_GENERATION and before.next_producer_id != NO_PRODUCER_ID:
        producer_id, epoch = before.next_producer_id, 0
    return before._replace(
        state=TRANSITIONS.next_state(before.state, TransactionEvent.MARKERS_WRITTEN),
        producer_id=producer_id,
        previous_producer_id=before.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=epoch,
        partitions=NO_PARTITIONS,
        last_update_ms=now_ms,
    )

"""Produce requests with batches of a transaction: verified first, then appended (KIP-890).

Only the batch that begins a transaction in a partition has to be verified; the common request
is appended at once. Source: Kafka's ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import INTERNAL_TOPICS
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...protocol.records.batch import BATCH_HEADER_BYTES, RecordBatch
from ...replication.append import AppendCallback, PartitionResponse
from ...runtime.steps import Steps, run_at_once
from ..interbroker.transaction_verification import (
    RETRIABLE,
    Guards,
    PartitionErrors,
    WriterInTransaction,
)
from .context import HandlerContext
from .produce_appends import (
    Entries,
    append_entries,
    append_entries_in_steps,
    internal_topics_allowed,
)
from .requests import Request

FIRST_VERSION_THAT_KNOWS_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS_PARTITIONS = 12


def append_transactional(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    entries: Entries,
    on_complete: AppendCallback,
) -> Steps[bool]:
    """Append the batches of a request that has some of a transaction.

    Args:
        context: the broker's.
        request: a Produce with a transactional id.
        entries: its batches, by partition.
        on_complete: gets every partition's outcome, in or after a flush.

    Returns:
        Whether they are staged; else that is done later, when their transaction is verified, or
        beside other requests, if the request is long.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING, the batches are of several producers.
    """
    transactional_id = request.body.transactional_id
    assert transactional_id is not None, "a Produce without one is refused before"
    version = request.api_version
    sequences: dict[TopicPartition, int] = {}
    producers: set[tuple[int, int]] = set()
    for topic_partition, records in entries.items():
        yield
        if len(records) < BATCH_HEADER_BYTES:
            continue  # the log knows what is wrong with so few bytes
        batch = RecordBatch(records)
        if not (batch.is_transactional and batch.has_producer_id):
            continue
        producers.add((batch.producer_id, batch.producer_epoch))
        if internal_topics_allowed(request) or topic_partition.topic not in INTERNAL_TOPICS:
            sequences[topic_partition] = batch.base_sequence
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    is_staged = False

    def verified(errors: PartitionErrors, guards: Guards) -> None:
        nonlocal is_staged
        work = _append_verified(context, request, entries, on_complete, errors, guards)
        if request.is_long:
            request.connection.dispatcher.begin(work, request.connection)
        else:
            run_at_once(work)
            is_staged = True

    if not sequences:
        verified({}, {})
        return is_staged
    ((producer_id, producer_epoch),) = producers
    yield from context.coordinators.transaction_verifier.verify(
        WriterInTransaction(
            transactional_id,
            producer_id,
            producer_epoch,
            version >= FIRST_VERSION_THAT_ADDS_PARTITIONS,
            version >= FIRST_VERSION_THAT_KNOWS_ABORTABLE,
        ),
        sequences,
        verified,
    )
    if not is_staged and not request.is_long:
        # The request's memory is another's when the coordinator has answered. A long request has
        # memory of its own.
        entries = {each: memoryview(bytearray(records)) for each, records in entries.items()}
    return is_staged


def _append_verified(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    entries: Entries,
    on_complete: AppendCallback,
    errors: PartitionErrors,
    guards: Guards,
) -> Steps[None]:
    """Append the batches of partitions without an error, and answer those of the others with it."""
    adds_partitions = request.api_version >= FIRST_VERSION_THAT_ADDS_PARTITIONS
    refused: dict[TopicPartition, PartitionResponse] = {}
    for each, error in errors.items():
        refused[each] = _refusal(error, adds_partitions=adds_partitions)
        yield

    def appended(results: dict[TopicPartition, PartitionResponse]) -> None:
        on_complete(results | refused)

    left = {each: entries[each] for each in entries if each not in errors}
    if request.is_long:
        yield from append_entries_in_steps(context, request, left, appended, guards)
    else:
        append_entries(context, request, left, appended, guards)


def _refusal(error: ErrorCode, *, adds_partitions: bool) -> PartitionResponse:
    """A coordinator's error in words that producers know.

    For one that passes the answer is NOT_ENOUGH_REPLICAS: then they retry without a metadata
    request. Those that leave the adding to the broker know that a transaction may not be over.
    """
    if error is ErrorCode.INVALID_TXN_STATE:
        return PartitionResponse(error, error_message="Partition was not added to the transaction")
    if error in RETRIABLE and not (adds_partitions and error is ErrorCode.CONCURRENT_TRANSACTIONS):
        return PartitionResponse(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            error_message="Unable to verify the partition has been added to the transaction: "
            f"{error.name}",
        )
    return PartitionResponse(error)

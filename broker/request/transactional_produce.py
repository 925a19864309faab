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
from ...storage.log.append_origin import AppendOrigin
from ..interbroker.transaction_verification import (
    RETRIABLE,
    Guards,
    PartitionErrors,
    WriterInTransaction,
)
from .context import HandlerContext
from .requests import Request

FIRST_VERSION_THAT_KNOWS_ABORTABLE = 11
FIRST_VERSION_THAT_ADDS_PARTITIONS = 12

Entries = dict[TopicPartition, memoryview]


def append_transactional(
    context: HandlerContext,
    request: Request[messages.ProduceRequest],
    entries: Entries,
    on_complete: AppendCallback,
    *,
    internal_topics_allowed: bool,
) -> bool:
    """Append the batches of a request that has some of a transaction.

    Args:
        context: the broker's.
        request: a Produce with a transactional id.
        entries: its batches, by partition.
        on_complete: gets every partition's outcome, in or after a flush.
        internal_topics_allowed: whether internal topics may be written to.

    Returns:
        Whether they are staged; else that is done later, when their transaction is verified.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING, the batches are of several producers.
    """
    body = request.body
    transactional_id = body.transactional_id
    assert transactional_id is not None, "a Produce without one is refused before"
    version = request.api_version
    sequences: dict[TopicPartition, int] = {}
    producers: set[tuple[int, int]] = set()
    for topic_partition, records in entries.items():
        if len(records) < BATCH_HEADER_BYTES:
            continue  # the log knows what is wrong with so few bytes
        batch = RecordBatch(records)
        if not (batch.is_transactional and batch.has_producer_id):
            continue
        producers.add((batch.producer_id, batch.producer_epoch))
        if internal_topics_allowed or topic_partition.topic not in INTERNAL_TOPICS:
            sequences[topic_partition] = batch.base_sequence
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    is_staged = False

    def verified(errors: PartitionErrors, guards: Guards) -> None:
        nonlocal is_staged
        is_staged = True

        def appended(results: dict[TopicPartition, PartitionResponse]) -> None:
            refused = {
                each: _refusal(error, adds_partitions=adds_partitions)
                for each, error in errors.items()
            }
            on_complete(results | refused)

        context.replica_manager.append_records(
            timeout_ms=body.timeout_ms,
            required_acks=body.acks,
            internal_topics_allowed=internal_topics_allowed,
            origin=AppendOrigin.CLIENT,
            entries={each: entries[each] for each in entries if each not in errors},
            on_complete=appended,
            guards=guards,
        )

    adds_partitions = version >= FIRST_VERSION_THAT_ADDS_PARTITIONS
    if not sequences:
        verified({}, {})
        return True
    ((producer_id, producer_epoch),) = producers
    context.coordinators.transaction_verifier.verify(
        WriterInTransaction(
            transactional_id,
            producer_id,
            producer_epoch,
            adds_partitions,
            version >= FIRST_VERSION_THAT_KNOWS_ABORTABLE,
        ),
        sequences,
        verified,
    )
    if is_staged:
        return True
    # The request's memory is another's when the coordinator has answered.
    entries = {each: memoryview(bytearray(records)) for each, records in entries.items()}
    return False


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

"""AddPartitionsToTxn (24), versions 0-5: partitions join a transaction, or are looked up in it.

Behaviour: answered when the grown transaction is in `__transaction_state`; the first
partition opens it. All partitions of a transaction join, or none does: where one is unknown
or forbidden the others are OPERATION_NOT_ATTEMPTED.
Version notes: 0 to 3 come from clients, for one transaction. 4 and 5 come from brokers, for
many, and need CLUSTER_ACTION on the cluster; a verify-only entry adds nothing and says
TRANSACTION_ABORTABLE of partitions that are not in the transaction (KIP-890). Below 2,
INVALID_PRODUCER_EPOCH stands for PRODUCER_FENCED.
Departures from Kafka: none known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import INTERNAL_TOPICS
from ...common.topic_partition import TopicPartition
from ...metadata.features import SECOND_GENERATION
from ...protocol import messages
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked
from ..request.requests import Request
from ..request.transaction_errors import fenced_error

FIRST_VERSION_OF_BROKERS = 4

Results = Mapping[TopicPartition, ErrorCode]


class RequestedTransaction(NamedTuple):
    """One transaction of a request, of any version."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    partitions: frozenset[TopicPartition]


def handle_add_partitions_to_txn(
    context: HandlerContext, request: Request[messages.AddPartitionsToTxnRequest]
) -> Parked:
    """Look at each transaction for itself; answer when the last is done.

    Raises:
        KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    if request.api_version >= FIRST_VERSION_OF_BROKERS and not context.authorize(
        request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME
    ):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    requested = _requested(request)
    results: dict[str, Results] = {}

    def done(transactional_id: str, of_partitions: Results) -> None:
        results[transactional_id] = of_partitions
        if len(results) == len(requested):
            request.answer(_response(results, request.api_version))

    if not requested:
        request.answer(_response(results, request.api_version))
    for transaction in requested:
        _take(context, request, transaction, partial(done, transaction.transactional_id))
    return PARKED


def _take(
    context: HandlerContext,
    request: Request[messages.AddPartitionsToTxnRequest],
    requested: RequestedTransaction,
    done: Callable[[Results], None],
) -> None:
    refused = _refusals(context, request, requested)
    if refused is not None:
        done(refused)
        return
    coordinator = context.coordinators.transaction
    is_of_broker = request.api_version >= FIRST_VERSION_OF_BROKERS
    who = (requested.transactional_id, requested.producer_id, requested.producer_epoch)
    if requested.verify_only:
        done(coordinator.verify_partitions(*who, requested.partitions))
        return

    def added(error: ErrorCode) -> None:
        known_error = fenced_error(error, request.api_version)
        done(dict.fromkeys(requested.partitions, known_error))

    # A producer whose broker asks for it speaks KIP-890's second generation.
    coordinator.add_partitions(
        *who, requested.partitions, added, client_version=SECOND_GENERATION if is_of_broker else 0
    )


def _refusals(
    context: HandlerContext,
    request: Request[messages.AddPartitionsToTxnRequest],
    requested: RequestedTransaction,
) -> Results | None:
    """Why the transaction gets none of the partitions; None if it may have them all."""
    is_of_client = request.api_version < FIRST_VERSION_OF_BROKERS
    transactional_id = requested.transactional_id
    if is_of_client and not context.authorize(
        request, "WRITE", "TRANSACTIONAL_ID", transactional_id
    ):
        return dict.fromkeys(requested.partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    forbidden = set()
    if is_of_client:
        forbidden = {
            topic
            for topic in {partition.topic for partition in requested.partitions}
            if topic in INTERNAL_TOPICS or not context.authorize(request, "WRITE", "TOPIC", topic)
        }
    results = {}
    for partition in requested.partitions:
        if partition.topic in forbidden:
            results[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif context.metadata_cache.get_partition_info(*partition) is None:
            results[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not results:
        return None
    return dict.fromkeys(requested.partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | results


def _requested(request: Request[messages.AddPartitionsToTxnRequest]) -> list[RequestedTransaction]:
    """The transactions of a request; of one that is named twice, the last counts."""
    body = request.body
    if request.api_version < FIRST_VERSION_OF_BROKERS:
        return [
            RequestedTransaction(
                body.v3_and_below_transactional_id,
                body.v3_and_below_producer_id,
                body.v3_and_below_producer_epoch,
                False,
                _partitions(body.v3_and_below_topics),
            )
        ]
    by_id = {
        entry.transactional_id: RequestedTransaction(
            entry.transactional_id,
            entry.producer_id,
            entry.producer_epoch,
            entry.verify_only,
            _partitions(entry.topics),
        )
        for entry in body.transactions
    }
    return list(by_id.values())


def _partitions(
    topics: Iterable[messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic],
) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(topic.name, partition) for topic in topics for partition in topic.partitions
    )


def _response(results: Mapping[str, Results], version: int) -> messages.AddPartitionsToTxnResponse:
    response = messages.AddPartitionsToTxnResponse
    if version < FIRST_VERSION_OF_BROKERS:
        (of_partitions,) = results.values()
        return response(results_by_topic_v3_and_below=_topic_results(of_partitions))
    return response(
        results_by_transaction=[
            response.AddPartitionsToTxnResult(
                transactional_id=transactional_id, topic_results=_topic_results(of_partitions)
            )
            for transactional_id, of_partitions in results.items()
        ]
    )


def _topic_results(
    results: Results,
) -> list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    response = messages.AddPartitionsToTxnResponse
    topics: dict[
        str, list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult]
    ] = {}
    for partition, error in sorted(results.items()):
        topics.setdefault(partition.topic, []).append(
            response.AddPartitionsToTxnPartitionResult(
                partition_index=partition.partition, partition_error_code=error
            )
        )
    return [
        response.AddPartitionsToTxnTopicResult(name=topic, results_by_partition=of_topic)
        for topic, of_topic in topics.items()
    ]

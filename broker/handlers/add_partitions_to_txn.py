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

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ...common.errors import ErrorCode, KafkaError
from ...common.internal_topics import INTERNAL_TOPICS
from ...common.topic_partition import TopicPartition
from ...metadata.features import SECOND_GENERATION
from ...protocol import messages
from ...runtime.steps import Steps, clear_in_steps, sorted_in_steps
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request
from ..request.transaction_errors import fenced_error

FIRST_VERSION_OF_BROKERS = 4

Results = dict[TopicPartition, ErrorCode]


class RequestedTransaction(NamedTuple):
    """One transaction of a request, of any version."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    partitions: dict[TopicPartition, None]


@in_steps
def handle_add_partitions_to_txn(
    context: HandlerContext, request: Request[messages.AddPartitionsToTxnRequest]
) -> Steps[messages.AddPartitionsToTxnResponse | Parked]:
    """Look at each transaction for itself; answer when the last is done.

    Raises:
        KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    if (
        request.api_version >= FIRST_VERSION_OF_BROKERS
        and context.admission.has_authorizer  # who may do all by version 3 may do it by this one
        and not context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME)
    ):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    requested = yield from _requested(request)
    results: dict[str, Results] = {}

    def done(transactional_id: str, of_partitions: Results) -> None:
        results[transactional_id] = of_partitions
        if len(results) == len(requested):
            request.answer_after(_last_response(results, requested, request.api_version))

    if not requested:
        return (yield from _response(results, request.api_version))
    for transaction in requested:
        yield from _take(context, request, transaction, partial(done, transaction.transactional_id))
        yield
    return PARKED


def _take(
    context: HandlerContext,
    request: Request[messages.AddPartitionsToTxnRequest],
    requested: RequestedTransaction,
    done: Callable[[Results], None],
) -> Steps[None]:
    refused = yield from _refusals(context, request, requested)
    if refused is not None:
        done(refused)
        return
    coordinator = context.coordinators.transaction
    is_of_broker = request.api_version >= FIRST_VERSION_OF_BROKERS
    who = (requested.transactional_id, requested.producer_id, requested.producer_epoch)
    if requested.verify_only:
        done(coordinator.verify_partitions(*who, frozenset(requested.partitions)))
        return

    def added(error: ErrorCode) -> None:
        known_error = fenced_error(error, request.api_version)
        done(dict.fromkeys(requested.partitions, known_error))

    # A producer whose broker asks for it speaks KIP-890's second generation.
    coordinator.add_partitions(
        *who,
        frozenset(requested.partitions),
        added,
        client_version=SECOND_GENERATION if is_of_broker else 0,
    )


def _refusals(
    context: HandlerContext,
    request: Request[messages.AddPartitionsToTxnRequest],
    requested: RequestedTransaction,
) -> Steps[Results | None]:
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
        yield
        if partition.topic in forbidden:
            results[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif context.metadata_cache.get_partition_info(*partition) is None:
            results[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not results:
        return None
    for partition in requested.partitions:
        results.setdefault(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
        yield
    return results


def _requested(
    request: Request[messages.AddPartitionsToTxnRequest],
) -> Steps[list[RequestedTransaction]]:
    """The transactions of a request; of one that is named twice, the last counts."""
    body = request.body
    if request.api_version < FIRST_VERSION_OF_BROKERS:
        return [
            RequestedTransaction(
                body.v3_and_below_transactional_id,
                body.v3_and_below_producer_id,
                body.v3_and_below_producer_epoch,
                False,
                (yield from _partitions(body.v3_and_below_topics)),
            )
        ]
    by_id = {}
    for entry in body.transactions:
        by_id[entry.transactional_id] = RequestedTransaction(
            entry.transactional_id,
            entry.producer_id,
            entry.producer_epoch,
            entry.verify_only,
            (yield from _partitions(entry.topics)),
        )
        yield
    return list(by_id.values())


def _partitions(
    topics: Iterable[messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic],
) -> Steps[dict[TopicPartition, None]]:
    """Each once, in an order that is the same in every process."""
    partitions: dict[TopicPartition, None] = {}
    for topic in topics:
        for partition in topic.partitions:
            partitions[TopicPartition(topic.name, partition)] = None
            yield
    return partitions


def _last_response(
    results: Mapping[str, Results], requested: Sequence[RequestedTransaction], version: int
) -> Steps[messages.AddPartitionsToTxnResponse]:
    """The response; what it was made from is let go."""
    response = yield from _response(results, version)
    for of_partitions in results.values():
        yield from clear_in_steps(of_partitions)
    for transaction in requested:
        yield from clear_in_steps(transaction.partitions)
    return response


def _response(
    results: Mapping[str, Results], version: int
) -> Steps[messages.AddPartitionsToTxnResponse]:
    response = messages.AddPartitionsToTxnResponse
    answer = response()
    if version < FIRST_VERSION_OF_BROKERS:
        (of_partitions,) = results.values()
        answer.results_by_topic_v3_and_below = yield from _topic_results(of_partitions)
        return answer
    for transactional_id, of_partitions in results.items():
        topic_results = yield from _topic_results(of_partitions)
        answer.results_by_transaction.append(
            response.AddPartitionsToTxnResult(
                transactional_id=transactional_id, topic_results=topic_results
            )
        )
        yield
    return answer


def _topic_results(
    results: Results,
) -> Steps[list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]]:
    response = messages.AddPartitionsToTxnResponse
    by_topic: dict[str, dict[int, ErrorCode]] = {}
    for (topic, partition), error in results.items():
        by_topic.setdefault(topic, {})[partition] = error
        yield
    topics = []
    for name in sorted(by_topic):
        of_topic = response.AddPartitionsToTxnTopicResult(name=name)
        errors = by_topic[name]
        for partition in (yield from sorted_in_steps(list(errors))):
            of_topic.results_by_partition.append(
                response.AddPartitionsToTxnPartitionResult(
                    partition_index=partition, partition_error_code=errors[partition]
                )
            )
            yield
        topics.append(of_topic)
    return topics

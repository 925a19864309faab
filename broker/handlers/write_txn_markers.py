"""WriteTxnMarkers (27), versions 1-2: end transactions in the partitions led here.

Behaviour: sent by transaction coordinators, which act as brokers (CLUSTER_ACTION on the cluster),
and by an administrator who aborts a transaction that hangs (ALTER on the cluster). Each partition
of each marker is answered on its own, when all in-sync replicas have the marker.
Version notes: 2 says the coordinator's transaction.version, by which the epoch is checked: from
2 on a marker has a newer epoch than the records (KIP-1228).
Departures from Kafka: who only has ALTER, as everybody without an authorizer, may name no newer
epochs than the partition knows of the producer, which is what Kafka's and our tools name: else
INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED. In Kafka one marker of a client can have
all that the coordinator sends later be refused, so that the transaction never ends.
"""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ...runtime.long_work import run_in_steps
from ...runtime.steps import DictInParts, Steps
from ...storage.log.append_origin import AppendOrigin
from ..interbroker.broker_requests import ACTING_AS_BROKER, look_up_broker
from ..interbroker.transaction_markers import Marker, MarkerErrors
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Outcome, Parked, Stepwise, Task
from ..request.requests import Request

Results: TypeAlias = DictInParts[TopicPartition, ErrorCode]
"""What a producer's markers came to."""

PARTITIONS_PER_PIECE = 4
"""A marker in so many partitions is one item of the steps."""
PIECES_PER_FLUSH = 16
"""After so many the logs are written, once for all of them: what is staged is in memory."""


def handle_write_txn_markers(
    context: HandlerContext, request: Request[messages.WriteTxnMarkersRequest]
) -> Outcome[messages.WriteTxnMarkersResponse]:
    """Write what a broker sends, or look first whether it is a broker that does."""
    if context.admission.is_allowed(request, *ACTING_AS_BROKER):
        return Stepwise(_write(context, request, AppendOrigin.COORDINATOR))
    return Task(_write_if_allowed(context, request))


async def _write_if_allowed(
    context: HandlerContext, request: Request[messages.WriteTxnMarkersRequest]
) -> messages.WriteTxnMarkersResponse | Parked:
    await look_up_broker(context, request.connection)
    if context.admission.is_allowed(request, *ACTING_AS_BROKER):
        origin = AppendOrigin.COORDINATOR
    elif context.admission.is_allowed(request, "ALTER", "CLUSTER", CLUSTER_NAME):
        origin = AppendOrigin.ADMINISTRATOR
    else:
        context.authorize(request, *ACTING_AS_BROKER)  # Kafka's audit log names it, not ALTER
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await run_in_steps(_write(context, request, origin))


def _write(
    context: HandlerContext,
    request: Request[messages.WriteTxnMarkersRequest],
    origin: AppendOrigin,
) -> Steps[messages.WriteTxnMarkersResponse | Parked]:
    """Write every marker; answer when the last is written."""
    body = request.body
    results: dict[int, Results] = {}
    for requested in body.markers:
        if requested.producer_id < 0 or requested.producer_epoch < 0:
            # Nobody's marker would end nothing. Kafka fails to build it, and says no more either.
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        results[requested.producer_id] = DictInParts()
        yield
    waiting = 1  # the writing itself, which may not end before the last is begun

    def written(producer_id: int, errors: MarkerErrors) -> None:
        nonlocal waiting
        for topic_partition, error in errors.items():
            results[producer_id][topic_partition] = error
        end_one()

    def end_one() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            request.answer_after(_response(results))

    pieces = 0
    for requested in body.markers:
        partitions = yield from _partitions(requested)
        while partitions:
            batch: list[TopicPartition] = []
            while partitions and len(batch) < PARTITIONS_PER_PIECE:
                batch.append(partitions.popitem()[0])
            marker = Marker(
                requested.producer_id,
                requested.producer_epoch,
                requested.coordinator_epoch,
                requested.transaction_result,
                batch,
                requested.transaction_version,
            )
            waiting += 1
            context.coordinators.marker_writer.write(
                marker, partial(written, marker.producer_id), origin
            )
            pieces += 1
            if pieces % PIECES_PER_FLUSH == 0:
                context.replica_manager.flush()
            yield
    end_one()
    return PARKED


def _partitions(
    requested: messages.WriteTxnMarkersRequest.WritableTxnMarker,
) -> Steps[DictInParts[TopicPartition, None]]:
    """Where a marker goes, each partition once.

    What was decoded goes topic by topic: the answer takes as much memory again.
    """
    partitions: DictInParts[TopicPartition, None] = DictInParts()
    requested.topics.reverse()
    while requested.topics:
        topic = requested.topics.pop()
        for index in topic.partition_indexes:
            partitions[TopicPartition(topic.name, index)] = None
            yield
    return partitions


def _response(results: dict[int, Results]) -> Steps[messages.WriteTxnMarkersResponse]:
    response = messages.WriteTxnMarkersResponse
    markers = []
    for producer_id, errors in results.items():
        marker = response.WritableTxnMarkerResult(producer_id=producer_id)
        markers.append(marker)
        topics: dict[str, messages.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = {}
        while errors:  # each goes as its answer comes: there may be a quarter of a million
            (name, partition), error = errors.popitem()
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = response.WritableTxnMarkerTopicResult(name=name)
                marker.topics.append(topic)
            topic.partitions.append(
                response.WritableTxnMarkerPartitionResult(
                    partition_index=partition, error_code=error
                )
            )
            yield
    return response(markers=markers)

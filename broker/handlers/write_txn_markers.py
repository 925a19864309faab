"""WriteTxnMarkers (27), versions 1-2: end transactions in the partitions led here.

Behaviour: sent by transaction coordinators, and by an administrator who aborts a transaction
that hangs. Each partition of each marker is answered on its own, when all in-sync replicas
have the marker. Who sends it must be allowed ALTER or CLUSTER_ACTION on the cluster.
Version notes: 2 says the coordinator's transaction.version, by which the epoch is checked: from
2 on a marker has a newer epoch than the records (KIP-1228).
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ..interbroker.transaction_markers import Marker, MarkerErrors
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked
from ..request.requests import Request


def handle_write_txn_markers(
    context: HandlerContext, request: Request[messages.WriteTxnMarkersRequest]
) -> Parked:
    """Write every marker; answer when the last is written."""
    if not context.authorize(request, "ALTER", "CLUSTER", CLUSTER_NAME) and not context.authorize(
        request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME
    ):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    body = request.body
    if any(marker.producer_id < 0 or marker.producer_epoch < 0 for marker in body.markers):
        # Nobody's marker would end nothing. Kafka fails to build it, and says no more either.
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    markers = [
        Marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_result,
            dict.fromkeys(
                TopicPartition(topic.name, index)
                for topic in marker.topics
                for index in topic.partition_indexes
            ),
            marker.transaction_version,
        )
        for marker in body.markers
    ]
    results: dict[int, MarkerErrors] = {marker.producer_id: {} for marker in markers}
    waiting = len(markers)
    if not markers:
        request.answer(messages.WriteTxnMarkersResponse())
        return PARKED
    for marker in markers:

        def written(errors: MarkerErrors, producer_id: int = marker.producer_id) -> None:
            nonlocal waiting
            results[producer_id].update(errors)
            waiting -= 1
            if not waiting:
                request.answer(_response(results))

        context.coordinators.marker_writer.write(marker, written)
    return PARKED


def _response(results: dict[int, MarkerErrors]) -> messages.WriteTxnMarkersResponse:
    response = messages.WriteTxnMarkersResponse
    markers = []
    for producer_id, errors in results.items():
        topics: dict[
            str, list[messages.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult]
        ] = {}
        for topic_partition, error in errors.items():
            topics.setdefault(topic_partition.topic, []).append(
                response.WritableTxnMarkerPartitionResult(
                    partition_index=topic_partition.partition, error_code=error
                )
            )
        markers.append(
            response.WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    response.WritableTxnMarkerTopicResult(name=name, partitions=partitions)
                    for name, partitions in topics.items()
                ],
            )
        )
    return response(markers=markers)

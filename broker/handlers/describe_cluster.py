"""DescribeCluster (60), versions 0-2: cluster id, controller and brokers (KIP-700).

Behaviour: answered from this broker's own copy of the metadata, with the addresses of the
listener the client came in by.
Version notes: 1 names the type of endpoint: this is a broker, so a request for
controllers is MISMATCHED_ENDPOINT_TYPE and any other type UNSUPPORTED_ENDPOINT_TYPE; 2 may ask
for fenced brokers, which only KRaft has: all here are unfenced.
Departures from Kafka: none.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...protocol import messages
from ..request.authorization import CLUSTER_NAME, NOT_REQUESTED, authorized_operations
from ..request.context import HandlerContext
from ..request.outcomes import Answer
from ..request.requests import Request

ENDPOINT_TYPE_BROKERS = 1
CONTROLLERS = 2


def handle_describe_cluster(
    context: HandlerContext, request: Request[messages.DescribeClusterRequest]
) -> Answer[messages.DescribeClusterResponse]:
    """Tell what this broker knows of the cluster."""
    body = request.body
    response = messages.DescribeClusterResponse
    if body.endpoint_type == CONTROLLERS:
        return Answer(
            response(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="The request was sent to an endpoint of type BROKER, but we wanted "
                "an endpoint of type CONTROLLER",
            )
        )
    if body.endpoint_type != ENDPOINT_TYPE_BROKERS:
        return Answer(
            response(
                error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message=f"Unsupported endpoint type {body.endpoint_type}",
            )
        )
    operations = NOT_REQUESTED
    if body.include_cluster_authorized_operations:
        operations = 0
        if context.authorize(request, "DESCRIBE", "CLUSTER", CLUSTER_NAME):
            reported = context.admission.authorize_reported
            operations = authorized_operations(reported, request, "CLUSTER", CLUSTER_NAME)
    cache = context.metadata_cache
    controller_id = cache.controller_id
    return Answer(
        response(
            cluster_id=context.cluster_id,
            controller_id=-1 if controller_id is None else controller_id,
            brokers=[
                response.DescribeClusterBroker(
                    broker_id=node.broker_id, host=node.host, port=node.port, rack=node.rack
                )
                for node in cache.get_alive_brokers(request.connection.listener_name)
            ],
            cluster_authorized_operations=operations,
        )
    )

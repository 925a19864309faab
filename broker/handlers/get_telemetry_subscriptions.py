"""GetTelemetrySubscriptions (71), version 0: which metrics a client is to push (KIP-714).

Behaviour: a client without an id gets one. Who asks again before its interval is over is refused,
unless the subscriptions have changed. Nobody needs a right for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...common.errors import KafkaError
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import Answer
from ..request.requests import Request
from ..telemetry.client_metrics import ACCEPTED_COMPRESSIONS


def handle_get_telemetry_subscriptions(
    context: HandlerContext, request: Request[messages.GetTelemetrySubscriptionsRequest]
) -> Answer[messages.GetTelemetrySubscriptionsResponse]:
    """Say what the client is to push, and when."""
    response = messages.GetTelemetrySubscriptionsResponse
    try:
        client = context.client_metrics.get(
            request.body.client_instance_id, client_attributes(request)
        )
    except KafkaError as refusal:
        return Answer(response(error_code=refusal.code))
    return Answer(
        response(
            client_instance_id=client.id,
            subscription_id=client.subscription_id,
            accepted_compression_types=list(ACCEPTED_COMPRESSIONS),
            push_interval_ms=client.requested.interval_ms,
            telemetry_max_bytes=context.config["telemetry.max.bytes"],
            delta_temporality=True,
            requested_metrics=sorted(client.requested.metrics),
        )
    )


def client_attributes(request: Request[object]) -> Mapping[str, str]:
    """What is known of who sent a request, by the names that subscriptions use."""
    connection = request.connection
    name, version = connection.client_software
    address, _, port = connection.peer.rpartition(":")
    return {
        "client_id": request.client_id,
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": address.strip("[]"),
        "client_source_port": port,
    }

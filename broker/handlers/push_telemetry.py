"""PushTelemetry (72), version 0: what a client has measured (KIP-714).

Behaviour: it is taken at the interval that the client was given; the last push of a client may come
at any time. The newest values are at the metrics endpoint.
Departures from Kafka: what is not OTLP is INVALID_RECORD; Kafka leaves that to its plugins.
"""

from __future__ import annotations

from ...common.errors import KafkaError
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request
from .get_telemetry_subscriptions import client_attributes


@in_steps
def handle_push_telemetry(
    context: HandlerContext, request: Request[messages.PushTelemetryRequest]
) -> Steps[messages.PushTelemetryResponse]:
    """Take the metrics, or say why not."""
    body = request.body
    try:
        yield from context.client_metrics.push(
            body.client_instance_id,
            client_attributes(request),
            body.subscription_id,
            body.compression_type,
            body.metrics,
            is_terminating=body.terminating,
        )
    except KafkaError as refusal:
        return messages.PushTelemetryResponse(error_code=refusal.code)
    return messages.PushTelemetryResponse()

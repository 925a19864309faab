"""ControlledShutdown (7), versions 0-3: a broker asks the controller to be relieved.

Behaviour: the broker's partitions get other leaders and it leaves their ISRs; answered are
those it still leads, after which it may ask again. STALE_BROKER_EPOCH for one that has
registered anew since, BROKER_NOT_AVAILABLE for one not registered, NOT_CONTROLLER elsewhere.
Version notes: 2 brings the broker's epoch. Version 0's header has no client id.
Departures from Kafka: served, not advertised: Kafka 4 has no such API any more.
"""

from __future__ import annotations

from ...protocol import messages
from ..interbroker.broker_requests import require_broker
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_controlled_shutdown(
    context: HandlerContext, request: Request[messages.ControlledShutdownRequest]
) -> messages.ControlledShutdownResponse:
    """Have the controller move the broker's partitions."""
    body = request.body
    await require_broker(context, request)
    remaining = await context.controller.shut_down_broker(body.broker_id, body.broker_epoch)
    response = messages.ControlledShutdownResponse
    return response(
        remaining_partitions=[
            response.RemainingPartition(topic_name=topic, partition_index=partition)
            for topic, partition in remaining
        ]
    )

"""AllocateProducerIds (67), version 0: a broker takes a block of producer ids (KIP-730).

Behaviour: a thousand ids that nobody else gets, by compare-and-set on
`/latest_producer_id_block`. STALE_BROKER_EPOCH for a broker that has registered anew since,
BROKER_ID_NOT_REGISTERED for one not alive. The controller answers; NOT_CONTROLLER elsewhere.
Departures from Kafka: served, not advertised: Kafka 4 has it between KRaft's controllers and
brokers only.
"""

from __future__ import annotations

from ...common.errors import ErrorCode, KafkaError
from ...controller.producer_ids import allocate_block
from ...protocol import messages
from ..interbroker.broker_requests import require_broker
from ..request.context import HandlerContext
from ..request.outcomes import in_task
from ..request.requests import Request


@in_task
async def handle_allocate_producer_ids(
    context: HandlerContext, request: Request[messages.AllocateProducerIdsRequest]
) -> messages.AllocateProducerIdsResponse:
    """Take the next block for the broker that asks."""
    body = request.body
    await require_broker(context, request)
    registered = context.controller.active.context.live_brokers.get(body.broker_id)
    if registered is None:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED)
    if body.broker_epoch < registered.epoch:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
    block = await allocate_block(context.metadata_store, body.broker_id)
    return messages.AllocateProducerIdsResponse(
        producer_id_start=block.first, producer_id_len=block.last - block.first + 1
    )

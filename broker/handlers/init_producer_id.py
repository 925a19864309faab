"""InitProducerId (22), versions 0-5: an id for a producer that must not write twice.

Behaviour: without a transactional id, a fresh producer id with epoch 0, whatever id and epoch
the client had before, as Kafka does. With one, the id's next epoch, which fences off all
producers before; a transaction that one of them left open is aborted first, and the client
answered CONCURRENT_TRANSACTIONS until it is. Ids come from blocks of a thousand that the
metadata store gives out, so no two brokers give out the same.
Version notes: 3 tells the id and epoch the client has (KIP-360); one without the other is
INVALID_REQUEST. Below 4, INVALID_PRODUCER_EPOCH stands for PRODUCER_FENCED.
Departures from Kafka: a producer that asks again for the very last epoch of its id gets it
again, where Kafka answers UNKNOWN_SERVER_ERROR. Version 6, for transactions that another
system decides about (KIP-939), is not served, as in Kafka 4.3 by default.
"""

from __future__ import annotations

import logging

from ...common.errors import ErrorCode
from ...common.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from ...coordinator.transaction.coordinator import ProducerIdAndEpoch
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...runtime import waiting
from ...runtime.long_work import run_in_steps
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Answer, Outcome, Parked, Task
from ..request.requests import Request
from ..request.transaction_errors import fenced_error

logger = logging.getLogger(__name__)

BLOCK_SECONDS_MAX = 5
"""So long the metadata store may take; then the client is to ask again."""

FIRST_VERSION_WITH_PRODUCER_FENCED = 4


def handle_init_producer_id(
    context: HandlerContext, request: Request[messages.InitProducerIdRequest]
) -> Outcome[messages.InitProducerIdResponse]:
    """Answer at once or after an append, unless ACLs or another block of ids are needed first."""
    body = request.body
    is_known_to_be_allowed = True
    if body.transactional_id is None:
        is_known_to_be_allowed = context.admission.is_allowed(
            request, "IDEMPOTENT_WRITE", "CLUSTER", CLUSTER_NAME
        )
    elif not context.authorize(request, "WRITE", "TRANSACTIONAL_ID", body.transactional_id):
        return Answer(_response(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not is_known_to_be_allowed:
        return Task(_answer_if_it_may_write_somewhere(context, request))
    if _is_invalid(body):
        return Answer(_response(ErrorCode.INVALID_REQUEST))
    # While transactional ids are being loaded there is nothing to wait for, as in Kafka.
    is_loading = body.transactional_id is not None and context.coordinators.transaction.is_loading
    if context.controller.producer_ids.is_empty and not is_loading:
        return Task(_answer_with_another_block(context, request))
    _answer(context, request)
    return PARKED


def _is_invalid(body: messages.InitProducerIdRequest) -> bool:
    has_producer_id = body.producer_id != NO_PRODUCER_ID
    has_producer_epoch = body.producer_epoch != NO_PRODUCER_EPOCH
    return has_producer_id != has_producer_epoch


async def _answer_if_it_may_write_somewhere(
    context: HandlerContext, request: Request[messages.InitProducerIdRequest]
) -> messages.InitProducerIdResponse | Parked:
    """Look through all ACLs for a topic that it may write to (KIP-679)."""
    if not await run_in_steps(context.admission.authorize_somewhere(request, "WRITE", "TOPIC")):
        return _response(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if _is_invalid(request.body):
        return _response(ErrorCode.INVALID_REQUEST)
    return await _answer_with_another_block(context, request)


async def _answer_with_another_block(
    context: HandlerContext, request: Request[messages.InitProducerIdRequest]
) -> Parked:
    if context.controller.producer_ids.is_empty:
        try:
            with waiting.fail_after(BLOCK_SECONDS_MAX):
                await context.controller.producer_ids.refill()
        except (TimeoutError, MetadataStoreError) as error:
            logger.warning("%r gets no producer id now: %r", request, error)
    _answer(context, request)
    return PARKED


def _answer(context: HandlerContext, request: Request[messages.InitProducerIdRequest]) -> None:
    """Give the producer its id and epoch; without ids at hand it is to ask again."""
    body = request.body
    if body.transactional_id is None:
        producer_id = context.controller.producer_ids.take_nowait()
        if producer_id is None:
            request.answer(_response(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
        else:
            request.answer(_response(ErrorCode.NONE, producer_id, 0))
        return
    expected = None
    if body.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdAndEpoch(body.producer_id, body.producer_epoch)

    def respond(error: ErrorCode, producer_id: int, producer_epoch: int) -> None:
        known_error = fenced_error(error, request.api_version, FIRST_VERSION_WITH_PRODUCER_FENCED)
        request.answer(_response(known_error, producer_id, producer_epoch))

    context.coordinators.transaction.init_producer_id(
        body.transactional_id, body.transaction_timeout_ms, expected, respond
    )


def _response(
    error: ErrorCode, producer_id: int = NO_PRODUCER_ID, producer_epoch: int = NO_PRODUCER_EPOCH
) -> messages.InitProducerIdResponse:
    return messages.InitProducerIdResponse(
        error_code=error, producer_id=producer_id, producer_epoch=producer_epoch
    )

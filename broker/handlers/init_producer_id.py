"""InitProducerId (22), versions 0-5: an id for a producer that must not write twice.

Behaviour: without a transactional id, a fresh producer id with epoch 0, whatever id and epoch
the client had before, as Kafka does. Ids come from blocks of a thousand that the metadata
store gives out, so no two brokers give out the same.
Version notes: 3 tells the id and epoch the client has; one without the other is
INVALID_REQUEST.
Departures from Kafka: there are no transactions yet: with a transactional id it answers
UNSUPPORTED_VERSION, which clients take as final.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import trio

from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ErrorCode
from ..authorized_operations import CLUSTER_NAME
from ..metadata_store.errors import MetadataStoreError
from .registry import handles

if TYPE_CHECKING:
    from ..broker import Broker
    from ..requests import Request

logger = logging.getLogger(__name__)

BLOCK_SECONDS_MAX = 5
"""So long the metadata store may take; then the client is to ask again."""

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1


@handles(ApiKey.INIT_PRODUCER_ID, versions="0-5")
def handle_init_producer_id(
    broker: Broker, request: Request
) -> messages.InitProducerIdResponse | Coroutine[Any, Any, messages.InitProducerIdResponse]:
    """Answer at once, unless this broker needs another block of ids first."""
    body: messages.InitProducerIdRequest = request.body
    refusal = _refusal(broker, request, body)
    if refusal is not None:
        return messages.InitProducerIdResponse(
            error_code=refusal, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
    producer_id = broker.controller.producer_ids.take_nowait()
    if producer_id is None:
        return _take_from_another_block(broker, request)
    return messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refusal(
    broker: Broker, request: Request, body: messages.InitProducerIdRequest
) -> ErrorCode | None:
    transactional_id = body.transactional_id
    if transactional_id is not None:
        if not broker.authorize(request, "WRITE", "TRANSACTIONAL_ID", transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not broker.authorize(request, "IDEMPOTENT_WRITE", "CLUSTER", CLUSTER_NAME):
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    has_producer_id = body.producer_id != NO_PRODUCER_ID
    has_producer_epoch = body.producer_epoch != NO_PRODUCER_EPOCH
    if has_producer_id != has_producer_epoch or transactional_id == "":
        return ErrorCode.INVALID_REQUEST
    if transactional_id is not None:
        return ErrorCode.UNSUPPORTED_VERSION
    return None


async def _take_from_another_block(
    broker: Broker, request: Request
) -> messages.InitProducerIdResponse:
    try:
        with trio.fail_after(BLOCK_SECONDS_MAX):
            producer_id = await broker.controller.producer_ids.take()
    except (trio.TooSlowError, MetadataStoreError) as error:
        logger.warning("%r gets no producer id now: %r", request, error)
        return messages.InitProducerIdResponse(
            error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
        )
    return messages.InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

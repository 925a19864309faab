"""AddOffsetsToTxn (25), versions 0-4: a group's offsets are to be committed in a transaction.

Behaviour: the partition of `__consumer_offsets` that keeps the group joins the transaction,
as any partition does. Producers of the second generation do not ask for it (KIP-890).
Version notes: below 2, INVALID_PRODUCER_EPOCH stands for PRODUCER_FENCED.
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...common.internal_topics import CONSUMER_OFFSETS
from ...common.topic_partition import TopicPartition
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Answer, Parked
from ..request.requests import Request
from ..request.transaction_errors import fenced_error


def handle_add_offsets_to_txn(
    context: HandlerContext, request: Request[messages.AddOffsetsToTxnRequest]
) -> Answer[messages.AddOffsetsToTxnResponse] | Parked:
    """Add the group's partition; the answer comes when that is stored."""
    body = request.body
    if not context.authorize(request, "WRITE", "TRANSACTIONAL_ID", body.transactional_id):
        return Answer(_response(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    if not context.authorize(request, "READ", "GROUP", body.group_id):
        return Answer(_response(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    partition = context.coordinators.group.partition_for(body.group_id)

    def respond(error: ErrorCode) -> None:
        request.answer(_response(fenced_error(error, request.api_version)))

    context.coordinators.transaction.add_partitions(
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        frozenset((TopicPartition(CONSUMER_OFFSETS, partition),)),
        respond,
    )
    return PARKED


def _response(error: ErrorCode) -> messages.AddOffsetsToTxnResponse:
    return messages.AddOffsetsToTxnResponse(error_code=error)

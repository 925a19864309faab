"""EndTxn (26), versions 0-5: a producer commits or aborts its transaction.

Behaviour: answered when the decision is in `__transaction_state`; markers are written after
that, and until they are the producer's next requests are answered CONCURRENT_TRANSACTIONS. A
request that comes again is answered as the first.
Version notes: 5 is of KIP-890's second generation: the answer brings the epoch to go on
with, and another producer id when the epochs are used up; there may be nothing to abort.
Below 2, INVALID_PRODUCER_EPOCH stands for PRODUCER_FENCED.
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...metadata.features import SECOND_GENERATION
from ...protocol import messages
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Answer, Parked
from ..request.requests import Request
from ..request.transaction_errors import fenced_error

FIRST_VERSION_OF_SECOND_GENERATION = 5


def handle_end_txn(
    context: HandlerContext, request: Request[messages.EndTxnRequest]
) -> Answer[messages.EndTxnResponse] | Parked:
    """Hand the request to the coordinator; the answer comes with the decision."""
    body = request.body
    if not context.authorize(request, "WRITE", "TRANSACTIONAL_ID", body.transactional_id):
        return Answer(
            messages.EndTxnResponse(error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        )

    def respond(error: ErrorCode, producer_id: int, producer_epoch: int) -> None:
        request.answer(
            messages.EndTxnResponse(
                error_code=fenced_error(error, request.api_version),
                producer_id=producer_id,
                producer_epoch=producer_epoch,
            )
        )

    is_second = request.api_version >= FIRST_VERSION_OF_SECOND_GENERATION
    context.coordinators.transaction.end_transaction(
        body.transactional_id,
        body.producer_id,
        body.producer_epoch,
        respond,
        committed=body.committed,
        client_version=SECOND_GENERATION if is_second else 0,
    )
    return PARKED

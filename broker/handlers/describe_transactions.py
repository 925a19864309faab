"""DescribeTransactions (65), version 0: the state of transactions, one by one (KIP-664).

Behaviour: each transactional id for itself: its state, producer, start and partitions, or
NOT_COORDINATOR, TRANSACTIONAL_ID_NOT_FOUND and so on. Topics that the client may not
describe are left out, and so are partitions that have their marker already.
Departures from Kafka: an id that is named again is answered once.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...coordinator.transaction.describing import DescribedTransaction
from ...protocol import messages
from ...runtime.steps import Steps, map_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request


@in_steps
def handle_describe_transactions(
    context: HandlerContext, request: Request[messages.DescribeTransactionsRequest]
) -> Steps[messages.DescribeTransactionsResponse]:
    """Describe every requested transactional id, once."""
    states = yield from map_in_steps(
        lambda transactional_id: _state(context, request, transactional_id),
        dict.fromkeys(request.body.transactional_ids),
    )
    return messages.DescribeTransactionsResponse(transaction_states=states)


def _state(
    context: HandlerContext,
    request: Request[messages.DescribeTransactionsRequest],
    transactional_id: str,
) -> messages.DescribeTransactionsResponse.TransactionState:
    if context.authorize(request, "DESCRIBE", "TRANSACTIONAL_ID", transactional_id):
        found = context.coordinators.transaction.describe(transactional_id)
    else:
        refusal = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        found = DescribedTransaction(transactional_id, refusal)
    response = messages.DescribeTransactionsResponse
    if found.error:
        return response.TransactionState(error_code=found.error, transactional_id=transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(found.partitions):
        topics.setdefault(topic, []).append(partition)
    return response.TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=[
            response.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in topics.items()
            if context.authorize(request, "DESCRIBE", "TOPIC", topic)
        ],
    )

"""ListTransactions (66), versions 0-2: the transactional ids that this broker coordinates.

Behaviour: all of them, or those that pass every filter given; the client sees those that it
may describe. State names that do not exist are returned and match nothing (KIP-664).
Version notes: 1 filters by how long ago the transaction began (KIP-994), 2 by a pattern of
RE2 that the whole id must match (KIP-1152); one that does not compile is
INVALID_REGULAR_EXPRESSION.
Departures from Kafka: none known.
"""

from __future__ import annotations

from collections.abc import Callable

from ...coordinator.group.consumer.regular_expressions import compile_expression
from ...coordinator.transaction.describing import TransactionFilter
from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request


@in_steps
def handle_list_transactions(
    context: HandlerContext, request: Request[messages.ListTransactionsRequest]
) -> Steps[messages.ListTransactionsResponse]:
    """List the transactional ids that the client may see.

    Raises:
        KafkaError: INVALID_REGULAR_EXPRESSION, or the coordinator is not ready.
    """
    body = request.body
    matches: Callable[[str], bool] | None = None
    if body.transactional_id_pattern:
        matches = compile_expression(body.transactional_id_pattern)
    found = yield from context.coordinators.transaction.list_transactions(
        TransactionFilter(
            body.state_filters, body.producer_id_filters, body.duration_filter, matches
        )
    )
    answer = messages.ListTransactionsResponse(unknown_state_filters=found.unknown_states)
    for listed in found.transactions:
        if context.authorize(request, "DESCRIBE", "TRANSACTIONAL_ID", listed.name):
            answer.transaction_states.append(
                messages.ListTransactionsResponse.TransactionState(
                    transactional_id=listed.name,
                    producer_id=listed.producer_id,
                    transaction_state=listed.state,
                )
            )
        yield
    return answer

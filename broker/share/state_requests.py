"""What the five APIs of share partitions' states have in common: brokers send them each other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ...common.errors import ErrorCode, KafkaError
from ...coordinator.share.operations import SharePartitionKey, StateAnswer
from ...runtime.steps import Steps, count_items
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked
from ..request.requests import Request
from .state_messages import operations_in, response_of

ITEMS_PER_OPERATION: Final = 16
"""An append to the log takes some hundred microseconds."""


def submit_operations(context: HandlerContext, request: Request[Any]) -> Steps[Parked]:
    """Have all that a request names done by the share coordinator here; answer when it is.

    Raises:
        KafkaError: CLUSTER_AUTHORIZATION_FAILED.
    """
    if not context.authorize(request, "CLUSTER_ACTION", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    api_key = request.api_key
    answers: dict[SharePartitionKey, StateAnswer] = {}
    coordinator = context.coordinators.share
    waiting = 1  # the handing over itself

    def answered(key: SharePartitionKey, answer: StateAnswer) -> None:
        answers[key] = answer
        end_one()

    def end_one() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            request.answer_after(response_of(api_key, answers))

    respond: Callable[[SharePartitionKey, StateAnswer], None] = answered
    has_group = bool(request.body.group_id)  # Kafka answers nothing to nobody
    operations = (yield from operations_in(api_key, request.body)) if has_group else ()
    for operation in operations:
        waiting += 1
        yield from coordinator.submit_in_steps(operation, partial(respond, operation.key))
        yield from count_items(ITEMS_PER_OPERATION)
    end_one()
    return PARKED

"""DeleteGroups (42), versions 0-2: delete groups without members, with all their offsets.

Behaviour: each group for itself: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, or gone once that is
stored. A group named twice is answered once.
Departures from Kafka: none known.
"""

from __future__ import annotations

from functools import partial

from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ...runtime.steps import Steps, count_items, map_in_steps
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request

ITEMS_PER_GROUP = 16
"""A group that is deleted takes some hundred microseconds, one that is not some."""
GROUPS_PER_FLUSH = 20
"""After so many what is staged is written and gone: their ends come one after another, too."""


@in_steps
def handle_delete_groups(
    context: HandlerContext, request: Request[messages.DeleteGroupsRequest]
) -> Steps[messages.DeleteGroupsResponse | Parked]:
    """Delete every requested group; answer when the last is done."""
    body = request.body
    group_ids = list(dict.fromkeys(body.groups_names))
    results: dict[str, ErrorCode] = {}
    response = messages.DeleteGroupsResponse

    def result(group_id: str) -> messages.DeleteGroupsResponse.DeletableGroupResult:
        return response.DeletableGroupResult(group_id=group_id, error_code=results[group_id])

    def all_results() -> Steps[messages.DeleteGroupsResponse]:
        return response(results=(yield from map_in_steps(result, group_ids)))

    def deleted(group_id: str, error: ErrorCode) -> None:
        results[group_id] = error
        if len(results) == len(group_ids):
            request.answer_after(all_results())

    if not group_ids:
        return response()
    for number, group_id in enumerate(group_ids, start=1):
        yield
        if number % GROUPS_PER_FLUSH == 0:
            context.replica_manager.flush()
        try:
            if not context.authorize(request, "DELETE", "GROUP", group_id):
                raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
            yield from context.coordinators.group.delete_group(group_id, partial(deleted, group_id))
            yield from count_items(ITEMS_PER_GROUP)
        except KafkaError as refusal:
            deleted(group_id, refusal.code)
    return PARKED

"""ListGroups (16), versions 0-5: the groups that this broker coordinates.

Behaviour: all of them, or those in given states and of given types. Who may describe the
cluster sees all, others see the groups that they may describe.
Version notes: 4 tells and filters by state (KIP-518), 5 by type (KIP-848).
Departures from Kafka: none known.
"""

from __future__ import annotations

from ...protocol import messages
from ...runtime.steps import Steps
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request

CLUSTER_NAME = "kafka-cluster"


@in_steps
def handle_list_groups(
    context: HandlerContext, request: Request[messages.ListGroupsRequest]
) -> Steps[messages.ListGroupsResponse]:
    """List the groups that the client may see."""
    body = request.body
    sees_all = context.admission.is_allowed(request, "DESCRIBE", "CLUSTER", CLUSTER_NAME)
    answer = messages.ListGroupsResponse()
    coordinator = context.coordinators.group
    listed = yield from coordinator.list_groups(body.states_filter, body.types_filter)
    for group in listed:
        if sees_all or context.admission.is_allowed(request, "DESCRIBE", "GROUP", group.group_id):
            answer.groups.append(
                messages.ListGroupsResponse.ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type,
                    group_state=group.state,
                    group_type=group.group_type,
                )
            )
        yield
    return answer

"""DescribeClientQuotas (48), versions 0-1: the quotas of users, clients and addresses (KIP-546).

Behaviour: the entities that a filter matches, each with its quotas, as this broker knows them. A
filter that contradicts itself is INVALID_REQUEST, an entity type that there is not
UNSUPPORTED_VERSION.
Version notes: 1 is flexible.
"""

from __future__ import annotations

from ...common.errors import ErrorCode
from ...protocol import messages
from ...runtime.steps import Steps
from ...security.quotas.alterations import ClientQuotaFilter
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import in_steps
from ..request.requests import Request


@in_steps
def handle_describe_client_quotas(
    context: HandlerContext, request: Request[messages.DescribeClientQuotasRequest]
) -> Steps[messages.DescribeClientQuotasResponse]:
    """List the quotas that match."""
    body = request.body
    response = messages.DescribeClientQuotasResponse
    if not context.authorize(request, "DESCRIBE_CONFIGS", "CLUSTER", CLUSTER_NAME):
        return response(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, entries=None)
    requested = ClientQuotaFilter(
        [(each.entity_type, each.match_type, each.match) for each in body.components],
        strict=body.strict,
    )
    answer = response(error_message="", entries=[])
    assert answer.entries is not None
    for entity, quotas in list(context.quotas.by_entity.items()):
        if requested.matches(entity):
            answer.entries.append(
                response.EntryData(
                    entity=[
                        response.EntityData(entity_type=entity_type, entity_name=name)
                        for entity_type, name in entity.entries
                    ],
                    values=[
                        response.ValueData(key=key, value=value) for key, value in quotas.items()
                    ],
                )
            )
        yield
    return answer

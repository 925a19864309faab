"""DescribeAcls (29), versions 1-3: the ACLs that a filter is for.

Behaviour: grouped by the pattern of resources. SECURITY_DISABLED without an authorizer. A filter
with a number that nobody knows is for nothing, and one with a 0 closes the connection.
Version notes: 2 is flexible; 3 adds the resource type USER.
"""

from __future__ import annotations

from ...common.errors import AUTHORIZATION_FAILED, ErrorCode, KafkaError
from ...protocol import messages
from ...protocol.errors import ProtocolError
from ...runtime.steps import Steps
from ..request.acl_filters import NO_AUTHORIZER, read_filter
from ..request.authorization import CLUSTER_NAME
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, in_steps
from ..request.requests import Request


@in_steps
def handle_describe_acls(
    context: HandlerContext, request: Request[messages.DescribeAclsRequest]
) -> Steps[messages.DescribeAclsResponse | Parked]:
    """Find the ACLs."""
    response = messages.DescribeAclsResponse
    try:
        requested = read_filter(request.body)
    except ProtocolError as error:
        request.connection.fail(f"DescribeAcls: {error}")
        return PARKED
    if not context.authorize(request, "DESCRIBE", "CLUSTER", CLUSTER_NAME):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return response(error_code=code, error_message=AUTHORIZATION_FAILED[code])
    if context.acls is None:
        code = ErrorCode.SECURITY_DISABLED
        return response(error_code=code, error_message=f"{NO_AUTHORIZER} on the broker")
    answer = response(error_message="")
    if isinstance(requested, KafkaError):
        return answer
    found = yield from context.acls.matching(requested)
    for pattern, entries in found.items():
        resource = response.DescribeAclsResource(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
        )
        answer.resources.append(resource)
        for entry in entries:
            resource.acls.append(
                response.AclDescription(
                    principal=entry.principal,
                    host=entry.host,
                    operation=entry.operation,
                    permission_type=entry.permission,
                )
            )
            yield
    return answer

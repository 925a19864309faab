"""DeleteAcls (31), versions 1-3: remove the ACLs that filters are for.

Behaviour: each filter succeeds or fails on its own, and is answered with what it has removed. They
are out of force on this broker when it answers. SECURITY_DISABLED without an authorizer. Any broker
does it. A number that is 0 closes the connection.
Version notes: 2 is flexible; 3 adds the resource type USER.
"""

from __future__ import annotations

from ...common.acl import AclFilter
from ...common.errors import KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...protocol.errors import ProtocolError
from ...runtime.long_work import Pace, map_in_steps, run_in_steps
from ..dynamic_config.acl_manager import AclManager
from ..request.acl_filters import acls_to_alter, read_filter
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, Task
from ..request.requests import Request


def handle_delete_acls(
    context: HandlerContext, request: Request[messages.DeleteAclsRequest]
) -> Task[messages.DeleteAclsResponse]:
    """Remove the ACLs that the filters of the request are for."""
    return Task(_delete_all(context, request))


async def _delete_all(
    context: HandlerContext, request: Request[messages.DeleteAclsRequest]
) -> messages.DeleteAclsResponse | Parked:
    try:
        filters = await run_in_steps(map_in_steps(read_filter, request.body.filters))
    except ProtocolError as error:
        request.connection.fail(f"DeleteAcls: {error}")
        return PARKED
    acls = acls_to_alter(context, request)
    results = []
    pace = Pace()
    for requested in filters:
        await pace.keep()
        result = messages.DeleteAclsResponse.DeleteAclsFilterResult()
        try:
            if isinstance(requested, KafkaError):
                raise requested
            result.matching_acls = await _delete(acls, requested)
        except (KafkaError, MetadataStoreError) as error:
            refusal = kafka_error_of(error)
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return messages.DeleteAclsResponse(filter_results=results)


async def _delete(
    acls: AclManager, requested: AclFilter
) -> list[messages.DeleteAclsResponse.DeleteAclsMatchingAcl]:
    removed = []
    found = await run_in_steps(acls.matching(requested))
    for pattern, entries in sorted(found.items()):
        await acls.remove(pattern, entries)
        removed += [
            messages.DeleteAclsResponse.DeleteAclsMatchingAcl(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for entry in sorted(entries)
        ]
    return removed

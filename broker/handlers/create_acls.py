"""CreateAcls (30), versions 1-3: add ACLs.

Behaviour: each succeeds or fails on its own; one that is there already succeeds. They are in force
on this broker when it answers. SECURITY_DISABLED without an authorizer. Any broker does it. A
number that is 0 closes the connection.
Version notes: 2 is flexible; 3 adds the resource type USER.
"""

from __future__ import annotations

from ...common.errors import KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...protocol.errors import ProtocolError
from ...runtime.long_work import Pace, map_in_steps, run_in_steps
from ..request.acl_filters import acls_to_alter, read_acl
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, Task
from ..request.requests import Request


def handle_create_acls(
    context: HandlerContext, request: Request[messages.CreateAclsRequest]
) -> Task[messages.CreateAclsResponse]:
    """Add the ACLs of the request."""
    return Task(_create(context, request))


async def _create(
    context: HandlerContext, request: Request[messages.CreateAclsRequest]
) -> messages.CreateAclsResponse | Parked:
    try:
        requested = await run_in_steps(map_in_steps(read_acl, request.body.creations))
    except ProtocolError as error:
        request.connection.fail(f"CreateAcls: {error}")
        return PARKED
    acls = acls_to_alter(context, request)
    results = []
    pace = Pace()
    for each in requested:
        await pace.keep()
        result = messages.CreateAclsResponse.AclCreationResult(error_message="")
        try:
            if isinstance(each, KafkaError):
                raise each
            await acls.add(*each)
        except (KafkaError, MetadataStoreError) as error:
            refusal = kafka_error_of(error)
            result.error_code, result.error_message = refusal.code, refusal.message
        results.append(result)
    return messages.CreateAclsResponse(results=results)

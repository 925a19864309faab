"""CreateAcls (30), versions 1-3: add ACLs.

Behaviour: each succeeds or fails on its own; one that is there already succeeds. They are in force
on this broker when it answers. SECURITY_DISABLED without an authorizer. Any broker does it. A
number that is 0 closes the connection.
Version notes: 2 is flexible; 3 adds the resource type USER.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...common.errors import KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...protocol.errors import ProtocolError
from ..request.acl_filters import RequestedAcl, acls_to_alter, read_acl
from ..request.context import HandlerContext
from ..request.outcomes import PARKED, Parked, Task
from ..request.requests import Request


def handle_create_acls(
    context: HandlerContext, request: Request[messages.CreateAclsRequest]
) -> Task[messages.CreateAclsResponse] | Parked:
    """Add the ACLs of the request."""
    try:
        requested = [read_acl(creation) for creation in request.body.creations]
    except ProtocolError as error:
        request.connection.fail(f"CreateAcls: {error}")
        return PARKED
    return Task(_create(context, request, requested))


async def _create(
    context: HandlerContext,
    request: Request[messages.CreateAclsRequest],
    requested: Sequence[RequestedAcl | KafkaError],
) -> messages.CreateAclsResponse:
    acls = acls_to_alter(context, request)
    results = []
    for each in requested:
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

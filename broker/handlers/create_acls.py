"""CreateAcls (30), versions 1-3: add ACLs.

Behaviour: those of a pattern succeed or fail together, and are one write, as in Kafka's
AclAuthorizer; one that is there already succeeds. They are in force on this broker when it answers.
SECURITY_DISABLED without an authorizer. Any broker does it. A number that is 0 closes the
connection.
Version notes: 2 is flexible; 3 adds the resource type USER.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...common.acl import AclEntry, ResourcePattern
from ...common.errors import KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...protocol.errors import ProtocolError
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import Steps, map_in_steps
from ..request.acl_filters import RequestedAcl, acls_to_alter, read_acl
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
    by_pattern = await run_in_steps(_entries_by_pattern(requested))
    refusals = {}
    pace = Pace()
    for pattern, entries in by_pattern.items():
        await pace.keep()
        try:
            await acls.add(pattern, entries)
        except (KafkaError, MetadataStoreError) as error:
            refusals[pattern] = kafka_error_of(error)

    def result_of(
        each: RequestedAcl | KafkaError,
    ) -> messages.CreateAclsResponse.AclCreationResult:
        result = messages.CreateAclsResponse.AclCreationResult(error_message="")
        refusal = each if isinstance(each, KafkaError) else refusals.get(each[0])
        if refusal is not None:
            result.error_code, result.error_message = refusal.code, refusal.message
        return result

    return messages.CreateAclsResponse(
        results=await run_in_steps(map_in_steps(result_of, requested))
    )


def _entries_by_pattern(
    requested: Iterable[RequestedAcl | KafkaError],
) -> Steps[dict[ResourcePattern, list[AclEntry]]]:
    by_pattern: dict[ResourcePattern, list[AclEntry]] = {}
    for each in requested:
        if not isinstance(each, KafkaError):
            pattern, entry = each
            by_pattern.setdefault(pattern, []).append(entry)
        yield
    return by_pattern

"""DeleteAcls (31), versions 1-3: remove the ACLs that filters are for.

Behaviour: each filter is answered with what it has removed, and what could not be removed has an
error of its own. The ACLs of a pattern are removed in one write, as in Kafka's AclAuthorizer. They
are out of force on this broker when it answers. SECURITY_DISABLED without an authorizer. Any broker
does it. A number that is 0 closes the connection.
Version notes: 2 is flexible; 3 adds the resource type USER.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from ...common.acl import AclBinding, AclEntry, AclFilter, ResourcePattern
from ...common.errors import KafkaError
from ...controller.fenced_store import kafka_error_of
from ...metadata_store.errors import MetadataStoreError
from ...protocol import messages
from ...protocol.errors import ProtocolError
from ...runtime.long_work import Pace, run_in_steps
from ...runtime.steps import Steps, map_in_steps
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
    chosen = Chosen(acls)
    choices = await run_in_steps(chosen.choose_all(filters))
    refusals: dict[ResourcePattern, KafkaError] = {}
    pace = Pace()
    for pattern, entries in chosen.entries.items():
        await pace.keep()
        try:
            await acls.remove(pattern, entries)
        except (KafkaError, MetadataStoreError) as error:
            refusals[pattern] = kafka_error_of(error)

    results = await run_in_steps(_results(filters, choices, refusals))
    return messages.DeleteAclsResponse(filter_results=results)


class Chosen:
    """What the filters of a request are for: each ACL is the first one's that takes it.

    Args:
        acls: all there are.

    Attributes:
        entries: by pattern, those of all filters so far.
    """

    def __init__(self, acls: AclManager) -> None:
        self._acls = acls
        self._known: set[AclFilter] = set()
        self.entries: dict[ResourcePattern, set[AclEntry]] = {}

    def choose_all(
        self, filters: Iterable[AclFilter | KafkaError]
    ) -> Steps[list[list[AclBinding]]]:
        """What each filter adds; nothing where it is the same as an earlier one."""
        choices = []
        for requested in filters:
            choices.append((yield from self._choose(requested)))
            yield
        return choices

    def _choose(self, requested: AclFilter | KafkaError) -> Steps[list[AclBinding]]:
        bindings: list[AclBinding] = []
        if isinstance(requested, KafkaError) or requested in self._known:
            return bindings
        self._known.add(requested)
        found = yield from self._acls.matching(requested)
        for pattern, entries in found.items():
            of_pattern = self.entries.setdefault(pattern, set())
            for entry in entries:
                if entry not in of_pattern:
                    of_pattern.add(entry)
                    bindings.append(AclBinding(pattern, entry))
                yield
        return bindings


def _results(
    filters: Iterable[AclFilter | KafkaError],
    choices: Iterable[Iterable[AclBinding]],
    refusals: Mapping[ResourcePattern, KafkaError],
) -> Steps[list[messages.DeleteAclsResponse.DeleteAclsFilterResult]]:
    results = []
    for requested, bindings in zip(filters, choices, strict=True):
        result = messages.DeleteAclsResponse.DeleteAclsFilterResult()
        if isinstance(requested, KafkaError):
            result.error_code, result.error_message = requested.code, requested.message
        result.matching_acls = yield from map_in_steps(partial(_matching_acl, refusals), bindings)
        results.append(result)
        yield
    return results


def _matching_acl(
    refusals: Mapping[ResourcePattern, KafkaError], binding: AclBinding
) -> messages.DeleteAclsResponse.DeleteAclsMatchingAcl:
    pattern, entry = binding
    removed = messages.DeleteAclsResponse.DeleteAclsMatchingAcl(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
    refusal = refusals.get(pattern)
    if refusal is not None:
        removed.error_code, removed.error_message = refusal.code, refusal.message
    return removed

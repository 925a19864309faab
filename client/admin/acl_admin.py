"""Administration of ACLs: list, add and remove them (KIP-140, KIP-290)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TypeVar

from ...common.acl import (
    AclBinding,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from ...protocol import messages
from ..client import KafkaClient
from ..errors import UnsupportedByBrokerError
from .admin import Outcome, require_success

MemberT = TypeVar("MemberT", bound=IntEnum)


def creation_of(acls: Iterable[AclBinding]) -> messages.CreateAclsRequest:
    """The request that adds ACLs."""
    return messages.CreateAclsRequest(
        creations=[
            messages.CreateAclsRequest.AclCreation(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                resource_pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for pattern, entry in acls
        ]
    )


class AclAdmin:
    """Administers ACLs through a client.

    Args:
        client: is open, and stays so.
        timeout_ms: for each call.
    """

    def __init__(self, client: KafkaClient, timeout_ms: int = 30_000) -> None:
        self._client = client
        self._timeout_ms = timeout_ms

    async def describe(self, requested: AclFilter) -> list[AclBinding]:
        """The ACLs that a filter is for, in order.

        Raises:
            KafkaError: SECURITY_DISABLED, where there is no authorizer, and so on.
            ClientError: no broker could be reached, or it knows kinds of ACLs that this does not.
        """
        request = messages.DescribeAclsRequest(
            resource_type_filter=requested.resource_type,
            resource_name_filter=requested.name,
            pattern_type_filter=requested.pattern_type,
            principal_filter=requested.principal,
            host_filter=requested.host,
            operation=requested.operation,
            permission_type=requested.permission,
        )
        answer: messages.DescribeAclsResponse = await self._client.send_to_any(
            request, timeout_ms=self._timeout_ms
        )
        require_success([Outcome("the ACLs", answer.error_code, answer.error_message)])
        return sorted(
            _binding(
                resource.resource_type,
                resource.pattern_type,
                resource.resource_name,
                acl,
            )
            for resource in answer.resources
            for acl in resource.acls
        )

    async def create(self, acls: Iterable[AclBinding]) -> None:
        """Add ACLs; one that is there already is no error.

        Raises:
            KafkaError: SECURITY_DISABLED, INVALID_REQUEST and so on.
            ClientError: no broker could be reached.
        """
        given = list(acls)
        answer: messages.CreateAclsResponse = await self._client.send_to_any(
            creation_of(given), timeout_ms=self._timeout_ms
        )
        require_success(
            Outcome(f"the ACL of {acl.entry.principal}", each.error_code, each.error_message)
            for acl, each in zip(given, answer.results, strict=False)
        )

    async def delete(self, filters: Iterable[AclFilter]) -> list[AclBinding]:
        """Remove the ACLs that filters are for; returns those that were removed, in order.

        Raises:
            KafkaError: SECURITY_DISABLED and so on.
            ClientError: no broker could be reached.
        """
        request = messages.DeleteAclsRequest(
            filters=[
                messages.DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in filters
            ]
        )
        answer: messages.DeleteAclsResponse = await self._client.send_to_any(
            request, timeout_ms=self._timeout_ms
        )
        removed = []
        for result in answer.filter_results:
            require_success([Outcome("the ACLs", result.error_code, result.error_message)])
            for acl in result.matching_acls:
                require_success([Outcome("the ACL", acl.error_code, acl.error_message)])
                removed.append(
                    _binding(acl.resource_type, acl.pattern_type, acl.resource_name, acl)
                )
        return sorted(set(removed))


def _binding(
    resource_type: int,
    pattern_type: int,
    name: str,
    acl: messages.DescribeAclsResponse.AclDescription
    | messages.DeleteAclsResponse.DeleteAclsMatchingAcl,
) -> AclBinding:
    return AclBinding(
        ResourcePattern(
            _member(ResourceType, resource_type), _member(PatternType, pattern_type), name
        ),
        AclEntry(
            acl.principal,
            acl.host,
            _member(Operation, acl.operation),
            _member(Permission, acl.permission_type),
        ),
    )


def _member(kind: type[MemberT], number: int) -> MemberT:
    try:
        return kind(number)
    except ValueError:
        raise UnsupportedByBrokerError(
            f"the broker has an ACL with {kind.__name__} {number}, which is not known here"
        ) from None

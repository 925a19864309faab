"""ACLs and filters of ACLs as requests write them, and what of that cannot be meant."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from ...common.acl import (
    CLUSTER_NAME,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from ...common.errors import ErrorCode, KafkaError
from ...protocol import messages
from ...protocol.errors import ProtocolError

if TYPE_CHECKING:
    from ..dynamic_config.acl_manager import AclManager
    from .context import HandlerContext
    from .requests import Request

NO_AUTHORIZER: Final = "No Authorizer is configured"

MemberT = TypeVar("MemberT", bound=IntEnum)


def acls_to_alter(context: HandlerContext, request: Request[object]) -> AclManager:
    """The cluster's ACLs, for a request that may alter them.

    Raises:
        KafkaError: it may not, or there are none.
    """
    if not context.authorize(request, "ALTER", "CLUSTER", CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if context.acls is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, f"{NO_AUTHORIZER}.")
    return context.acls


class RequestedFilter(Protocol):
    """The fields that DescribeAcls and DeleteAcls have alike."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def read_filter(requested: RequestedFilter) -> AclFilter | KafkaError:
    """The filter of a request.

    Returns:
        It, or why it is for nothing that there is (Kafka's AclControlManager).

    Raises:
        ProtocolError: a number is 0, where Kafka closes the connection.
    """
    resource_type = _member(ResourceType, requested.resource_type_filter)
    pattern_type = _member(PatternType, requested.pattern_type_filter)
    operation = _member(Operation, requested.operation)
    permission = _member(Permission, requested.permission_type)
    if resource_type is None or pattern_type is None:
        return _invalid("Unknown patternFilter.")
    if operation is None or permission is None:
        return _invalid("Unknown entryFilter.")
    return AclFilter(
        resource_type,
        pattern_type,
        requested.resource_name_filter,
        requested.principal_filter,
        requested.host_filter,
        operation,
        permission,
    )


RequestedAcl = tuple[ResourcePattern, AclEntry]


def read_acl(requested: messages.CreateAclsRequest.AclCreation) -> RequestedAcl | KafkaError:
    """The pattern and the entry that are to be created.

    Returns:
        Them, or why they cannot be (Kafka's AclApis and AclControlManager).

    Raises:
        ProtocolError: a number is 0, where Kafka closes the connection.
    """
    resource_type = _member(ResourceType, requested.resource_type)
    pattern_type = _member(PatternType, requested.resource_pattern_type)
    operation = _member(Operation, requested.operation)
    permission = _member(Permission, requested.permission_type)
    if resource_type is None:
        return _invalid("Invalid resourceType UNKNOWN")
    if pattern_type is None:
        return _invalid("Invalid patternType UNKNOWN")
    if operation is None:
        return _invalid("Invalid operation UNKNOWN")
    if permission is None:
        return _invalid("Invalid permissionType UNKNOWN")
    pattern = ResourcePattern(resource_type, pattern_type, requested.resource_name)
    entry = AclEntry(requested.principal, requested.host, operation, permission)
    return _refusal(pattern, entry) or (pattern, entry)


def _refusal(pattern: ResourcePattern, entry: AclEntry) -> KafkaError | None:
    """Why an ACL cannot be, in Kafka's words."""
    resource_type, pattern_type, name = pattern
    if resource_type is ResourceType.CLUSTER and name != CLUSTER_NAME:
        return _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not name:
        return _invalid("Invalid empty resource name")
    kind, colon, who = entry.principal.partition(":")
    if not (kind and colon and who):
        return _invalid(
            f"Could not parse principal from `{entry.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    if (
        pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED)
        or resource_type is ResourceType.ANY
        or entry.operation is Operation.ANY
        or entry.permission is Permission.ANY
    ):  # what only filters have; Kafka fails to build it, and says no more
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return None


def _member(kind: type[MemberT], number: int) -> MemberT | None:
    if number == 0:
        raise ProtocolError(f"an unknown {kind.__name__}")
    try:
        return kind(number)
    except ValueError:
        return None


def _invalid(sentence: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, sentence)

"""What a request's principal may do with a resource, and the bit field that tells it (KIP-430)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ...runtime.steps import Steps
from .requests import ClientConnection, Request

Authorize = Callable[[Request[object], str, str, str], bool]
"""Whether a request's principal may do something: Kafka's name of the operation, such as "WRITE",
the type of resource ("TOPIC", "GROUP", "CLUSTER" or "TRANSACTIONAL_ID"), and its name."""


class Authorizations(Protocol):
    """What decides, and what of it goes into the audit log (Kafka's Action)."""

    def __call__(
        self,
        request: Request[object],
        operation: str,
        resource_type: str,
        resource_name: str,
        /,
        *,
        log_if_allowed: bool = True,
        log_if_denied: bool = True,
    ) -> bool:
        """Decide as an `Authorize` does.

        Args:
            request: whose principal does it.
            operation: Kafka's name of it.
            resource_type: of what it is done with.
            resource_name: of what it is done with.
            log_if_allowed: whether access is given by this.
            log_if_denied: whether access is refused by this, and not by what else may allow it.
        """


IsBroker = Callable[[ClientConnection], bool]
"""Whether a connection is a registered broker's."""

AuthorizeSomewhere = Callable[[Request[object], str, str], Steps[bool]]
"""Whether there is any resource of a type with which a principal may do something."""

NOT_REQUESTED: Final = -0x80000000
"""Stands in an answer whose client did not request the operations."""

CLUSTER_NAME: Final = "kafka-cluster"

OPERATION_BITS: Final = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
"""Operation to the number of its bit (Kafka's AclOperation)."""

OPERATIONS: Final = {
    "TOPIC": (
        "READ",
        "WRITE",
        "CREATE",
        "DELETE",
        "ALTER",
        "DESCRIBE",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
    ),
    "GROUP": ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    "CLUSTER": (
        "CREATE",
        "ALTER",
        "DESCRIBE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
    ),
}
"""The operations that make sense for a type of resource (Kafka's AclEntry)."""


def without_authorizer(is_broker: IsBroker) -> Authorizations:
    """Everyone may do everything, but act as a broker: that, only brokers may."""

    def authorize(
        request: Request[object],
        operation: str,
        resource_type: str,
        resource_name: str,
        /,
        *,
        log_if_allowed: bool = True,
        log_if_denied: bool = True,
    ) -> bool:
        return operation != "CLUSTER_ACTION" or is_broker(request.connection)

    return authorize


def authorized_operations(
    authorize: Authorize, request: Request[object], resource_type: str, resource_name: str
) -> int:
    """The bits of the operations that the request's principal is allowed."""
    bits = 0
    for operation in OPERATIONS[resource_type]:
        if authorize(request, operation, resource_type, resource_name):
            bits |= 1 << OPERATION_BITS[operation]
    return bits

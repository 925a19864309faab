"""What a request's principal may do with a resource, and the bit field that tells it (KIP-430)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .requests import Request

Authorize = Callable[[Request[object], str, str, str], bool]
"""Whether a request's principal may do something: Kafka's name of the operation, such as "WRITE",
the type of resource ("TOPIC", "GROUP", "CLUSTER" or "TRANSACTIONAL_ID"), and its name."""

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


def allow_everything(
    request: Request[object], operation: str, resource_type: str, resource_name: str
) -> bool:
    """Everyone may do everything: there is no authorizer yet."""
    return True


def authorized_operations(
    authorize: Authorize, request: Request[object], resource_type: str, resource_name: str
) -> int:
    """The bits of the operations that the request's principal is allowed."""
    bits = 0
    for operation in OPERATIONS[resource_type]:
        if authorize(request, operation, resource_type, resource_name):
            bits |= 1 << OPERATION_BITS[operation]
    return bits

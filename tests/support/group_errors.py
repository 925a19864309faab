"""Which errors Kafka documents for the group APIs, and which tests provoke them over TCP.

The lists are those of Kafka 4.3.1: "Supported errors" in the JSON of the messages, "Possible
error codes" in the classes of requests and responses, and, of JoinGroup, SyncGroup and
Heartbeat, which have neither, the codes that the Java client's handlers in AbstractCoordinator
tell apart and those that GroupCoordinatorService answers itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

TestT = TypeVar("TestT", bound=Callable[..., object])

LOADING = "COORDINATOR_LOAD_IN_PROGRESS"
UNAVAILABLE = "COORDINATOR_NOT_AVAILABLE"
ELSEWHERE_LED = "NOT_COORDINATOR"
REFUSED = "GROUP_AUTHORIZATION_FAILED"
COMMON = {LOADING, UNAVAILABLE, ELSEWHERE_LED, REFUSED}

DOCUMENTED: dict[str, set[str]] = {
    "JoinGroup": COMMON
    | {
        "FENCED_INSTANCE_ID",
        "GROUP_MAX_SIZE_REACHED",
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_GROUP_ID",
        "INVALID_SESSION_TIMEOUT",
        "MEMBER_ID_REQUIRED",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
        "UNSUPPORTED_VERSION",
    },
    "SyncGroup": {UNAVAILABLE, ELSEWHERE_LED, REFUSED}
    | {
        "FENCED_INSTANCE_ID",
        "ILLEGAL_GENERATION",
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_GROUP_ID",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
    },
    "Heartbeat": {UNAVAILABLE, ELSEWHERE_LED, REFUSED}
    | {
        "FENCED_INSTANCE_ID",
        "ILLEGAL_GENERATION",
        "INVALID_GROUP_ID",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
    },
    "LeaveGroup": COMMON | {"FENCED_INSTANCE_ID", "INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID"},
    "OffsetCommit": COMMON
    | {
        "FENCED_INSTANCE_ID",
        "FENCED_MEMBER_EPOCH",
        "GROUP_ID_NOT_FOUND",
        "ILLEGAL_GENERATION",
        "INVALID_COMMIT_OFFSET_SIZE",
        "INVALID_GROUP_ID",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_TXN_STATE",
        "OFFSET_METADATA_TOO_LARGE",
        "REBALANCE_IN_PROGRESS",
        "REQUEST_TIMED_OUT",
        "STALE_MEMBER_EPOCH",
        "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
    },
    "OffsetFetch": COMMON
    | {
        "GROUP_ID_NOT_FOUND",
        "INVALID_GROUP_ID",
        "STALE_MEMBER_EPOCH",
        "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNSTABLE_OFFSET_COMMIT",
    },
    "OffsetDelete": COMMON
    | {
        "GROUP_ID_NOT_FOUND",
        "GROUP_SUBSCRIBED_TO_TOPIC",
        "INVALID_GROUP_ID",
        "NON_EMPTY_GROUP",
        "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_TOPIC_OR_PARTITION",
    },
    "DeleteGroups": COMMON | {"GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID", "NON_EMPTY_GROUP"},
    "DescribeGroups": COMMON | {"GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID"},
    "ListGroups": {LOADING, UNAVAILABLE, "TOPIC_AUTHORIZATION_FAILED"},
    "FindCoordinator": {LOADING, UNAVAILABLE, REFUSED}
    | {"INVALID_REQUEST", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "TRANSACTION_ABORTABLE"},
    "ConsumerGroupHeartbeat": COMMON
    | {
        "FENCED_MEMBER_EPOCH",
        "GROUP_MAX_SIZE_REACHED",
        "INVALID_REGULAR_EXPRESSION",
        "INVALID_REQUEST",
        "TOPIC_AUTHORIZATION_FAILED",
        "UNKNOWN_MEMBER_ID",
        "UNRELEASED_INSTANCE_ID",
        "UNSUPPORTED_ASSIGNOR",
    },
    "ConsumerGroupDescribe": COMMON
    | {
        "GROUP_ID_NOT_FOUND",
        "INVALID_GROUP_ID",
        "INVALID_REQUEST",
        "TOPIC_AUTHORIZATION_FAILED",
    },
}


def provokes(error: str, *apis: str) -> Callable[[TestT], TestT]:
    """Mark a test: over TCP it makes each of these APIs answer this error."""
    for api in apis:
        assert error in DOCUMENTED[api], f"{api} is not documented to answer {error}"
    return lambda test: test


def provoked(folder: Path) -> Iterator[tuple[str, str]]:
    """The (API, error) of each `provokes` above a test of a folder's files."""
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for decorator in node.decorator_list:
                    yield from _pairs(decorator)


def _pairs(decorator: ast.expr) -> Iterator[tuple[str, str]]:
    if not (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id == "provokes"
    ):
        return
    error, *apis = (ast.literal_eval(argument) for argument in decorator.args)
    for api in apis:
        yield api, error

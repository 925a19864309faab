"""Which errors Kafka documents for the group APIs, how a classic group moves between states,
and which tests provoke each of that over TCP.

The lists are those of Kafka 4.3.1: "Supported errors" in the JSON of the messages, "Possible
error codes" in the classes of requests and responses, and, of JoinGroup, SyncGroup and
Heartbeat, which have neither, the codes that the Java client's handlers in AbstractCoordinator
tell apart and those that GroupCoordinatorService answers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
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
    "SyncGroup": COMMON
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
        "FENCED_INSTANCE_ID",
        "FENCED_MEMBER_EPOCH",
        "GROUP_ID_NOT_FOUND",
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


TRANSITIONS: set[tuple[str, str]] = {
    ("Empty", "PreparingRebalance"),
    ("Stable", "PreparingRebalance"),
    ("CompletingRebalance", "PreparingRebalance"),
    ("PreparingRebalance", "CompletingRebalance"),
    ("PreparingRebalance", "Empty"),
    ("CompletingRebalance", "Stable"),
    ("Empty", "Dead"),
    ("PreparingRebalance", "Dead"),
    ("CompletingRebalance", "Dead"),
    ("Stable", "Dead"),
}
"""How a classic group may move: the valid previous states of Kafka's ClassicGroupState."""


def group_error(error: str, *apis: str) -> Callable[[TestT], TestT]:
    """Mark a test: over TCP it makes each of these APIs answer this error."""
    for api in apis:
        assert error in DOCUMENTED[api], f"{api} is not documented to answer {error}"
    return lambda test: test


def moves(source: str, target: str) -> Callable[[TestT], TestT]:
    """Mark a test: over TCP it moves a classic group from one state to another."""
    assert (source, target) in TRANSITIONS
    return lambda test: test


def provoked(*folders: Path) -> set[tuple[str, str]]:
    """The (API, error) of each `group_error` above a test in files of these folders."""
    return {(api, error) for error, *apis in _marks("group_error", folders) for api in apis}


def moved(*folders: Path) -> set[tuple[str, ...]]:
    """The states of each `moves` above a test, likewise."""
    return {tuple(states) for states in _marks("moves", folders)}


def _marks(name: str, folders: Iterable[Path]) -> Iterator[list[str]]:
    for path in sorted(path for folder in folders for path in folder.glob("test_*.py")):
        for node in _parsed(path).body:
            if not (isinstance(node, ast.FunctionDef) and node.name.startswith("test_")):
                continue
            for mark in node.decorator_list:
                if (
                    isinstance(mark, ast.Call)
                    and isinstance(mark.func, ast.Name)
                    and mark.func.id == name
                ):
                    yield [ast.literal_eval(argument) for argument in mark.args]


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())

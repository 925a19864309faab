"""Operations and errors in kazoo's terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo import exceptions
from kazoo.security import ACL, CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from ..errors import (
    BadVersion,
    MetadataStoreError,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotAllowed,
    NotEmpty,
    SessionExpired,
    StoreUnreachable,
)
from ..store import Create, Delete, Operation, Result, SetData
from ..znodes import INTER_BROKER_SECRET

ERRORS: tuple[tuple[type[Exception], type[MetadataStoreError]], ...] = (
    (exceptions.NoNodeError, NoNode),
    (exceptions.NodeExistsError, NodeExists),
    (exceptions.BadVersionError, BadVersion),
    (exceptions.NotEmptyError, NotEmpty),
    (exceptions.NoChildrenForEphemeralsError, NoChildrenForEphemerals),
    (exceptions.SessionExpiredError, SessionExpired),
    (exceptions.NoAuthError, NotAllowed),
    (exceptions.AuthFailedError, NotAllowed),
    (exceptions.InvalidACLError, NotAllowed),
)

NO_ACCESS = "its ACL names others than this broker, see zookeeper.digest"

CONNECTION_LOSS = (
    exceptions.ConnectionLoss,
    exceptions.ConnectionDropped,
    exceptions.OperationTimeoutError,
    exceptions.SessionMovedError,
)
"""What may be over at the next attempt."""

OPEN_TO_ALL = "/consumers"
"""Where consumers of old wrote."""

SECRET = ("/config/users", "/config/brokers", "/delegation_token/tokens", INTER_BROKER_SECRET)
"""What is under these holds passwords, and may be read by brokers only."""

BESIDE_THE_POINT = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
"""What the other operations of a transaction answer when one is refused."""


def translate(error: Exception, path: str) -> MetadataStoreError:
    """A kazoo error as the store's own; what says nothing of a node is StoreUnreachable."""
    for theirs, ours in ERRORS:
        if isinstance(error, theirs):
            return ours(path, NO_ACCESS if ours is NotAllowed else "")
    return StoreUnreachable(path, f"{type(error).__name__}: {error}".rstrip(": "))


def is_connection_loss(error: BaseException | None) -> bool:
    """Whether a kazoo error says that the server could not be reached, and nothing else."""
    return isinstance(error, CONNECTION_LOSS)


def acl_of(path: str, set_acl: bool) -> list[ACL]:
    """Who may do what with a node that is made; after Kafka's ZkData.defaultAcls.

    Args:
        set_acl: `zookeeper.set.acl`: all may read, but only who made it may change it.
    """
    if not set_acl or path == OPEN_TO_ALL:
        allowed: list[ACL] = OPEN_ACL_UNSAFE
    elif path.startswith(SECRET):
        allowed = CREATOR_ALL_ACL
    else:
        allowed = CREATOR_ALL_ACL + READ_ACL_UNSAFE
    return allowed


def add_operation(transaction: Any, operation: Operation, set_acl: bool) -> None:
    """Put an operation into a kazoo transaction."""
    if isinstance(operation, Create):
        transaction.create(
            operation.path,
            operation.data,
            acl_of(operation.path, set_acl),
            ephemeral=operation.ephemeral,
            sequence=operation.sequential,
        )
    elif isinstance(operation, SetData):
        transaction.set_data(operation.path, operation.data, operation.expected_version)
    elif isinstance(operation, Delete):
        transaction.delete(operation.path, operation.expected_version)
    else:
        transaction.check(operation.path, operation.expected_version)


def first_refusal(
    operations: Sequence[Operation], answers: Sequence[object]
) -> MetadataStoreError | None:
    """Why a transaction was not done, from the operation that it stumbled over."""
    refused = [
        (operation, answer)
        for operation, answer in zip(operations, answers, strict=True)
        if isinstance(answer, Exception)
    ]
    for operation, answer in refused:
        if not isinstance(answer, BESIDE_THE_POINT):
            return translate(answer, operation.path)
    if refused:
        operation, answer = refused[0]
        return StoreUnreachable(operation.path, type(answer).__name__)
    return None


def results_of(operations: Sequence[Operation], answers: Sequence[Any]) -> list[Result]:
    """What each operation of a transaction that was done results in."""
    results: list[Result] = []
    for operation, answer in zip(operations, answers, strict=True):
        if isinstance(operation, Create):
            results.append(str(answer))
        elif isinstance(operation, SetData):
            results.append(int(answer.version))
        else:
            results.append(None)
    return results

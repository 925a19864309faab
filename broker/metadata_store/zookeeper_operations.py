"""Operations and errors in kazoo's terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kazoo import exceptions

from .errors import (
    BadVersion,
    MetadataStoreError,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    StoreUnreachable,
)
from .store import Create, Delete, Operation, Result, SetData

ERRORS: tuple[tuple[type[Exception], type[MetadataStoreError]], ...] = (
    (exceptions.NoNodeError, NoNode),
    (exceptions.NodeExistsError, NodeExists),
    (exceptions.BadVersionError, BadVersion),
    (exceptions.NotEmptyError, NotEmpty),
    (exceptions.NoChildrenForEphemeralsError, NoChildrenForEphemerals),
    (exceptions.SessionExpiredError, SessionExpired),
)

BESIDE_THE_POINT = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
"""What the other operations of a transaction answer when one is refused."""


def translate(error: Exception, path: str) -> MetadataStoreError:
    """A kazoo error as the store's own; what says nothing of a node is StoreUnreachable."""
    for theirs, ours in ERRORS:
        if isinstance(error, theirs):
            return ours(path)
    return StoreUnreachable(path, f"{type(error).__name__}: {error}".rstrip(": "))


def add_operation(transaction: Any, operation: Operation) -> None:
    """Put an operation into a kazoo transaction."""
    if isinstance(operation, Create):
        transaction.create(
            operation.path,
            operation.data,
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
    operations: Sequence[Operation], answers: Sequence[Any]
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

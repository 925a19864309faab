"""Every error code that Apache Kafka documents for the requests about transactions.

The codes are those listed above the response classes ("Possible error codes") and in the comments
of the message definitions of its sources; for DescribeTransactions, ListTransactions and
DescribeProducers, whose classes list none, those that its admin client's handlers tell apart.
A test that provokes one says so by `provokes`; one that no test can provoke has its reason here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from odradek.common.errors import ErrorCode as E

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

COORDINATOR = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS)

DOCUMENTED: dict[str, tuple[E, ...]] = {
    "InitProducerId": (
        *COORDINATOR,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.INVALID_PRODUCER_EPOCH,
        E.PRODUCER_FENCED,
        E.CONCURRENT_TRANSACTIONS,
        E.INVALID_TRANSACTION_TIMEOUT,
        E.INVALID_REQUEST,
        E.TRANSACTION_ABORTABLE,
    ),
    "AddPartitionsToTxn": (
        *COORDINATOR,
        E.INVALID_TXN_STATE,
        E.INVALID_PRODUCER_ID_MAPPING,
        E.INVALID_PRODUCER_EPOCH,
        E.PRODUCER_FENCED,
        E.TOPIC_AUTHORIZATION_FAILED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.OPERATION_NOT_ATTEMPTED,
        E.CONCURRENT_TRANSACTIONS,
        E.INVALID_REQUEST,
        E.TRANSACTION_ABORTABLE,
    ),
    "AddOffsetsToTxn": (
        *COORDINATOR,
        E.INVALID_PRODUCER_ID_MAPPING,
        E.INVALID_PRODUCER_EPOCH,
        E.PRODUCER_FENCED,
        E.INVALID_TXN_STATE,
        E.GROUP_AUTHORIZATION_FAILED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.CONCURRENT_TRANSACTIONS,
        E.INVALID_REQUEST,
        E.TRANSACTION_ABORTABLE,
    ),
    "EndTxn": (
        *COORDINATOR,
        E.INVALID_TXN_STATE,
        E.INVALID_PRODUCER_ID_MAPPING,
        E.INVALID_PRODUCER_EPOCH,
        E.PRODUCER_FENCED,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.CONCURRENT_TRANSACTIONS,
        E.INVALID_REQUEST,
        E.TRANSACTION_ABORTABLE,
    ),
    "TxnOffsetCommit": (
        *COORDINATOR,
        E.INVALID_PRODUCER_EPOCH,
        E.INVALID_PRODUCER_ID_MAPPING,
        E.INVALID_TXN_STATE,
        E.OFFSET_METADATA_TOO_LARGE,
        E.GROUP_AUTHORIZATION_FAILED,
        E.INVALID_COMMIT_OFFSET_SIZE,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        E.REQUEST_TIMED_OUT,
        E.UNKNOWN_MEMBER_ID,
        E.FENCED_INSTANCE_ID,
        E.ILLEGAL_GENERATION,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.INVALID_GROUP_ID,
        E.TRANSACTION_ABORTABLE,
    ),
    "WriteTxnMarkers": (
        E.CORRUPT_MESSAGE,
        E.INVALID_PRODUCER_EPOCH,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.MESSAGE_TOO_LARGE,
        E.RECORD_LIST_TOO_LARGE,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.INVALID_REQUIRED_ACKS,
        E.TRANSACTION_COORDINATOR_FENCED,
        E.REQUEST_TIMED_OUT,
        E.CLUSTER_AUTHORIZATION_FAILED,
    ),
    "DescribeTransactions": (
        *COORDINATOR,
        E.TRANSACTIONAL_ID_NOT_FOUND,
        E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        E.INVALID_REQUEST,
    ),
    "ListTransactions": (
        E.COORDINATOR_NOT_AVAILABLE,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.INVALID_REGULAR_EXPRESSION,
    ),
    "DescribeProducers": (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.INVALID_TOPIC_EXCEPTION,
        E.TOPIC_AUTHORIZATION_FAILED,
    ),
    "UpdateFeatures": (
        E.CLUSTER_AUTHORIZATION_FAILED,
        E.NOT_CONTROLLER,
        E.INVALID_REQUEST,
        E.FEATURE_UPDATE_FAILED,
        E.INVALID_UPDATE_VERSION,
    ),
}

REFUSALS = (
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    E.CLUSTER_AUTHORIZATION_FAILED,
    E.GROUP_AUTHORIZATION_FAILED,
    E.TOPIC_AUTHORIZATION_FAILED,
)
NOBODY_IS_REFUSED = "there is no authorizer that could refuse anybody"
NEVER_SENT = "Kafka documents it, and no path of its broker sends it"

UNPROVOKED: dict[tuple[str, E], str] = {
    **{
        (api, error): NOBODY_IS_REFUSED
        for api, errors in DOCUMENTED.items()
        for error in errors
        if error in REFUSALS
    },
    ("InitProducerId", E.TRANSACTION_ABORTABLE): NEVER_SENT,
    ("AddOffsetsToTxn", E.TRANSACTION_ABORTABLE): NEVER_SENT,
    ("EndTxn", E.TRANSACTION_ABORTABLE): NEVER_SENT,
    ("AddPartitionsToTxn", E.INVALID_TXN_STATE): NEVER_SENT,
    ("AddOffsetsToTxn", E.INVALID_TXN_STATE): NEVER_SENT,
    ("WriteTxnMarkers", E.CORRUPT_MESSAGE): "the broker makes the batch itself",
    ("WriteTxnMarkers", E.INVALID_REQUIRED_ACKS): "the broker asks for acks itself: all",
    ("WriteTxnMarkers", E.RECORD_LIST_TOO_LARGE): (
        "a segment has a megabyte or more, which no marker fills"
    ),
    ("WriteTxnMarkers", E.NOT_ENOUGH_REPLICAS_AFTER_APPEND): (
        "the high watermark stands still while too few replicas are in sync (KIP-966), and the "
        "request times out"
    ),
    ("TxnOffsetCommit", E.UNSUPPORTED_FOR_MESSAGE_FORMAT): (
        "all logs have message format 2, which knows transactions"
    ),
    ("TxnOffsetCommit", E.COORDINATOR_LOAD_IN_PROGRESS): (
        "of the group coordinator, which says so to every request alike: its own tests show it"
    ),
    ("TxnOffsetCommit", E.INVALID_COMMIT_OFFSET_SIZE): (
        "the offsets of one request stay far below the largest batch of their topic"
    ),
    ("TxnOffsetCommit", E.REQUEST_TIMED_OUT): "it becomes COORDINATOR_NOT_AVAILABLE",
    ("ListTransactions", E.COORDINATOR_NOT_AVAILABLE): (
        "only while the broker starts and stops, when it answers nobody"
    ),
    ("DescribeTransactions", E.COORDINATOR_NOT_AVAILABLE): (
        "only while the broker starts and stops, when it answers nobody"
    ),
    ("UpdateFeatures", E.NOT_CONTROLLER): "a broker passes the request on to the controller",
    ("UpdateFeatures", E.INVALID_REQUEST): (
        "of brokers on ZooKeeper; KRaft says INVALID_UPDATE_VERSION in its place"
    ),
    ("UpdateFeatures", E.FEATURE_UPDATE_FAILED): (
        "of brokers on ZooKeeper that lose the node to another writer; KRaft never sends it"
    ),
}


def provokes(api: str, *errors: E) -> Callable[[FunctionT], FunctionT]:
    """Mark a test as one that provokes these errors of an API."""
    assert set(errors) <= set(DOCUMENTED[api]), (api, errors)
    return lambda function: function


def provoked_in(paths: Iterable[Path]) -> set[tuple[str, E]]:
    """What the tests in some files say that they provoke."""
    found: set[tuple[str, E]] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "provokes":
                api, *errors = node.args
                assert isinstance(api, ast.Constant), path
                for error in errors:
                    assert isinstance(error, ast.Attribute), path
                    found.add((str(api.value), E[error.attr]))
    return found

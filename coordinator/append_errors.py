"""What a failed append to a coordinators' topic means to the client that caused it.

The client knows nothing of that topic, so the code says what to do: retry, or look up the
coordinator again. Source: Kafka's CoordinatorOperationExceptionHelper and
TransactionStateManager.
"""

from __future__ import annotations

from ..common.errors import ErrorCode

_COMMON = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}

_TOO_LARGE = (
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.INVALID_FETCH_SIZE,
)


def group_error(error: ErrorCode) -> ErrorCode:
    """The answer to a request whose record could not be appended."""
    if error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return _COMMON.get(error, error)


def commit_error(error: ErrorCode) -> ErrorCode:
    """The answer to OffsetCommit, whose records could not be appended."""
    if error in _TOO_LARGE:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return _COMMON.get(error, error)

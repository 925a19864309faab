"""Error codes of the transaction APIs that older clients do not know."""

from __future__ import annotations

from ...common.errors import ErrorCode

FIRST_VERSION_WITH_FENCED = 2
"""Of EndTxn, AddPartitionsToTxn and AddOffsetsToTxn."""


def fenced_error(
    error: ErrorCode, version: int, first_version_with_fenced: int = FIRST_VERSION_WITH_FENCED
) -> ErrorCode:
    """The error as a client of this version understands it.

    Before PRODUCER_FENCED there was INVALID_PRODUCER_EPOCH, to which an old producer
    reacts in the same way: it gives up (KIP-588).

    Args:
        first_version_with_fenced: of the API that is answered.
    """
    if error is ErrorCode.PRODUCER_FENCED and version < first_version_with_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error

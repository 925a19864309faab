"""Errors of storage."""

from __future__ import annotations

import errno

from ..common.errors import ErrorCode, KafkaError

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The disk, the quota or the largest file is full; space may be freed."""

NOT_THE_DISK = DISK_FULL | {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EINTR}
"""Errors that say nothing of what is on the disk; the others are short of descriptors,
memory or time."""


def is_disk_failure(error: OSError) -> bool:
    """Whether the disk can no longer be trusted, rather than being full.

    A directory that fails so is offline until a restart (Kafka's LogDirFailureChannel);
    what else goes wrong concerns one operation.
    """
    return error.errno not in NOT_THE_DISK


class StorageError(KafkaError):
    """The operating system refused to read or write a log; answered KAFKA_STORAGE_ERROR.

    Args:
        message: what was being done to which file, and what the system said.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class LogDirectoryError(Exception):
    """A log directory that cannot be used: locked by another, or of another broker."""


class CorruptIndexError(Exception):
    """An index file that was damaged; it is rebuilt from the batches."""


class UnexpectedAppendOffsetError(KafkaError):
    """A follower was given batches that do not follow its log, or each other.

    Args:
        message: which offsets.
        first_offset: the first offset it was given.
        last_offset: the last.
    """

    def __init__(self, message: str, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        self.first_offset = first_offset
        self.last_offset = last_offset


class RecordValidationError(KafkaError):
    """Some records of a batch are not valid for the topic, so all are refused.

    Args:
        code: INVALID_RECORD or INVALID_TIMESTAMP.
        message: for the partition as a whole.
        record_errors: the positions in the batch of the records at fault, with a sentence
            each, for the produce response; none where the batch as a whole is.
    """

    def __init__(self, code: ErrorCode, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors

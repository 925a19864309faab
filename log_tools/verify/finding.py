"""What a verification finds: where, what, and whether it is damage."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class FindingKind(StrEnum):
    """What a finding is about."""

    BATCH = "batch"
    """Bytes of a log that are no whole batch, with sound ones behind them."""
    TORN_TAIL = "torn-tail"
    """Bytes at the end of a log that are no whole batch."""
    OFFSETS = "offsets"
    RECORDS = "records"
    OFFSET_INDEX = "offset-index"
    TIME_INDEX = "time-index"
    TRANSACTION_INDEX = "transaction-index"
    SNAPSHOT = "snapshot"
    EPOCHS = "leader-epochs"
    CHECKPOINT = "checkpoint"
    PARTITION_METADATA = "partition-metadata"
    META_PROPERTIES = "meta-properties"
    CLEAN_SHUTDOWN = "clean-shutdown"
    DIRECTORY = "directory"
    UNREADABLE = "unreadable"
    """The operating system refused to read it."""
    NOTE = "note"
    """No damage, but worth knowing."""


class Finding(NamedTuple):
    """One thing found."""

    kind: FindingKind
    path: str
    message: str
    """What is wrong, as a sentence."""
    offset: int | None = None
    """Of the batch it is about, or of the record."""
    position: int | None = None
    """In the file, in bytes."""

    @property
    def is_damage(self) -> bool:
        """Whether it is more than a note."""
        return self.kind is not FindingKind.NOTE


def unusable(kind: FindingKind, path: str, error: Exception) -> Finding:
    """The finding that a file cannot be used, in the words of the error that said so."""
    if isinstance(error, OSError):
        return Finding(FindingKind.UNREADABLE, path, f"cannot be read: {error.strerror or error}")
    return Finding(kind, path, without_path(str(getattr(error, "message", None) or error), path))


def without_path(sentence: str, path: str) -> str:
    """A sentence about a file whose path stands beside it anyway."""
    return sentence.replace(f"{path} ", "it ", 1) if sentence.startswith(path) else sentence

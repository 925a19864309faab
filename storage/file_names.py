"""The names of files and folders in a log directory (Kafka's LogFileUtils)."""

from __future__ import annotations

import os.path

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)
"""Of the files of one segment, the batches' first."""

SNAPSHOT_SUFFIX = ".snapshot"
"""Of the producer states at an offset."""

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
"""Of the files of a compacted segment on their way into the log; see `segment_swap`."""

DELETED_SUFFIX = ".deleted"
"""Of the files of a segment that is pending deletion."""

CUT_SUFFIX = ".cut"
"""Of what was cut off a segment's file; see `recovery.cut_files`."""

DELETE_SUFFIX = "-delete"
"""Of the folder of a log that is pending deletion; the next start removes it."""

FUTURE_SUFFIX = "-future"
"""Of the folder of a log that is moving into this log directory (KIP-113)."""

STRAY_SUFFIX = "-stray"
"""Of the folder of a log that was set aside, because its topic does not exist."""


LOCK_FILE = ".lock"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
META_PROPERTIES_FILE = "meta.properties"
STORE_REFERENCE_FILE = "odradek-store.properties"
RECOVERY_POINTS_FILE = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS_FILE = "replication-offset-checkpoint"
LOG_START_OFFSETS_FILE = "log-start-offset-checkpoint"
CLEANER_OFFSETS_FILE = "cleaner-offset-checkpoint"
ABORTED_TRANSACTIONS_FILE = "aborted-transactions-checkpoint"
"""At the root of a log directory."""

PARTITION_METADATA_FILE = "partition.metadata"
EPOCHS_FILE = "leader-epoch-checkpoint"
"""In the folder of a partition."""


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """The path of a segment's file: the base offset in twenty digits, and the suffix."""
    return os.path.join(directory, f"{base_offset:020d}{suffix}")


def snapshot_path(directory: str, offset: int) -> str:
    """The path of the producer snapshot at `offset`."""
    return segment_path(directory, offset, SNAPSHOT_SUFFIX)

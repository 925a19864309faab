"""Logs on disk: segments, indexes, producer state, checkpoints, recovery.

It speaks records and offsets, never wire messages, and knows nothing of trio. Files are
in Kafka's own formats, so Kafka's tools read them.
"""

from .append_origin import AppendOrigin
from .errors import (
    LogDirectoryError,
    RecordValidationError,
    StorageError,
    UnexpectedAppendOffsetError,
)
from .file_slice import FileSlice
from .log import Log
from .log_append_info import LogAppendInfo
from .log_config import LogConfig
from .log_loader import load_log
from .log_manager import LogManager
from .log_read import LogRead
from .time_index import TimestampAndOffset
from .topic_partition import TopicPartition

__all__ = [
    "AppendOrigin",
    "FileSlice",
    "Log",
    "LogAppendInfo",
    "LogConfig",
    "LogDirectoryError",
    "LogManager",
    "LogRead",
    "RecordValidationError",
    "StorageError",
    "TimestampAndOffset",
    "TopicPartition",
    "UnexpectedAppendOffsetError",
    "load_log",
]

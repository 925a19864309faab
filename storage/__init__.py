"""Logs on disk: segments, indexes, producer state, checkpoints, recovery.

It speaks records and offsets, never wire messages, and knows nothing of trio. Files are
in Kafka's own formats, so Kafka's tools read them.

Whatever touches a file raises `OSError` where the disk fails; `Log` and `LogManager` report that
to the log's owner and raise `StorageError`. Docstrings mention it only where there is more to say.
"""

from ..common.topic_partition import TopicPartition
from .errors import (
    LogDirectoryError,
    RecordValidationError,
    StorageError,
    UnexpectedAppendOffsetError,
)
from .index.time_index import TimestampAndOffset
from .io.file_slice import FileSlice
from .log.append_origin import AppendOrigin
from .log.log import Log
from .log.log_append_info import LogAppendInfo
from .log.log_config import LogConfig
from .log.log_read import LogRead
from .log_manager.log_manager import LogManager
from .recovery.log_loader import load_log

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

"""What a recovery or a repair cuts off a log is kept beside it, in files that end in `.cut`.

Such a file is named after the segment, the position in it at which its bytes lay, and the wall
time of the recovery: `00000000000000000520.log.8192.1700000000000.cut`. Neither Kafka nor a start
of ours reads them, `odradek log dump` shows them, and they go with the partition's folder. Those of
recoveries do not pile up: a start removes what is older than `CUT_MS_MAX`, and the oldest while a
partition has more than `CUT_BYTES_MAX` of them besides the latest.
"""

from __future__ import annotations

import logging
import os.path
import re
from collections.abc import Iterable

from ..errors import is_disk_failure
from ..file_names import CUT_SUFFIX
from ..io.files import Files

logger = logging.getLogger(__name__)

CUT_MS_MAX = 7 * 24 * 3600 * 1000
CUT_BYTES_MAX = 1 << 30
COPY_BYTES = 1024 * 1024

_OF_RECOVERY = re.compile(r"\d{20}\.log\.\d+\.(\d+)" + re.escape(CUT_SUFFIX))


def cut_path(log_path: str, position: int, now_ms: int) -> str:
    """Where a recovery keeps what it cuts off a segment's file.

    Args:
        log_path: the segment's file.
        position: in it.
        now_ms: the wall time.
    """
    return f"{log_path}.{position}.{now_ms}{CUT_SUFFIX}"


def is_only_zeros(files: Files, path: str, position: int, end: int) -> bool:
    """Whether a file holds nothing else there, as a file system leaves the end after a crash."""
    file = files.open(path)
    return not any(
        any(file.read_at(min(COPY_BYTES, end - at), at)) for at in range(position, end, COPY_BYTES)
    )


def copy_tail(files: Files, path: str, position: int, end: int, target_path: str) -> None:
    """Copy the bytes of a file from a position to its end, durably.

    Raises:
        OSError: the disk fails or is full; there is no copy.
    """
    source = files.open(path)
    target = files.open(target_path, create=True)
    try:
        for at in range(position, end, COPY_BYTES):
            data = source.read_at(min(COPY_BYTES, end - at), at)
            target.append([data], len(data))
        target.sync()
    except OSError:
        files.remove(target_path)
        raise
    files.sync_directory(os.path.dirname(path))


def keep_tail(files: Files, log_path: str, position: int, end: int, now_ms: int) -> str | None:
    """Keep what a recovery is about to cut off a segment.

    Returns:
        The path of the copy. None if there is none: it is all zeros, or the disk is full, which
        is no reason to leave the partition offline.

    Raises:
        OSError: the disk fails.
    """
    if is_only_zeros(files, log_path, position, end):
        return None
    path = cut_path(log_path, position, now_ms)
    try:
        copy_tail(files, log_path, position, end, path)
    except OSError as error:
        if is_disk_failure(error):
            raise
        logger.error("the last %d bytes of %s cannot be kept: %s", end - position, log_path, error)
        return None
    return path


def remove_old_cuts(files: Files, directory: str, names: Iterable[str], now_ms: int) -> None:
    """Remove what recoveries have kept for too long, and what is too much; repairs' copies stay.

    Args:
        directory: the partition's folder.
        names: of all that is in it.
        now_ms: the wall time.
    """
    cuts = sorted(
        ((int(match[1]), match[0]) for match in map(_OF_RECOVERY.fullmatch, names) if match),
        reverse=True,
    )
    kept_bytes = 0
    for cut_ms, name in cuts:
        path = os.path.join(directory, name)
        kept_bytes += files.size(path)
        is_latest = cut_ms == cuts[0][0]
        if cut_ms < now_ms - CUT_MS_MAX or (kept_bytes > CUT_BYTES_MAX and not is_latest):
            files.remove(path)

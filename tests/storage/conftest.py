"""Logs to test with, and a file system that can be told to fail."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.protocol.records import Record, build_batch, iter_batches, iter_records
from odradek.storage import Log, LogAppendInfo, LogConfig, TopicPartition, load_log
from odradek.storage.io.files import REAL_FILES, Files, StorageFile

NOW_MS = 1_700_000_000_000
ORDERS = TopicPartition("orders", 0)

OpenLog = Callable[..., Log]
Append = Callable[..., LogAppendInfo]
ReadAll = Callable[..., list[Record]]


@pytest.fixture
def open_log(tmp_path: Path) -> OpenLog:
    """Open the log of orders-0: `open_log(clean_shutdown=True, segment_bytes=100)`."""

    def open_it(**arguments: Any) -> Log:
        fields = {name: arguments.pop(name) for name in LogConfig._fields if name in arguments}
        folder = str(tmp_path / ORDERS.folder_name)
        return load_log(folder, ORDERS, LogConfig(**fields), **{"now_ms": NOW_MS, **arguments})

    return open_it


@pytest.fixture
def append() -> Append:
    """Append one batch: `append(log, b"value", b"another", timestamp=5, producer_id=1)`."""

    def append_them(
        log: Log,
        *values: bytes,
        timestamp: int = NOW_MS,
        leader_epoch: int = 0,
        flush: bool = True,
        now_ms: int = NOW_MS,
        **header: Any,
    ) -> LogAppendInfo:
        records = [(b"key", value, timestamp, []) for value in values or (b"value",)]
        batch = memoryview(build_batch(records, **header))
        info = log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=now_ms)
        if flush:
            log.flush_appends()
        return info

    return append_them


@pytest.fixture
def read_all() -> ReadAll:
    """Every record from an offset on, read a few bytes at a time."""

    def read_them(log: Log, start_offset: int | None = None) -> list[Record]:
        records: list[Record] = []
        offset = log.log_start_offset if start_offset is None else start_offset
        while offset < log.log_end_offset:
            batches = list(iter_batches(log.read(offset, 1).records.read()))
            for batch in batches:
                records += [each for each in iter_records(batch) if each.offset >= offset]
            offset = batches[-1].next_offset
        return records

    return read_them


class FaultyFile:
    """A file whose appends and truncations fail when its file system says so."""

    def __init__(self, file: StorageFile, owner: FaultyFiles) -> None:
        self._file = file
        self._owner = owner

    def append(self, buffers: Sequence[Any], size: int) -> None:
        room = self._owner.room_bytes
        if room is None or size <= room:
            self._file.append(buffers, size)
            if room is not None:
                self._owner.room_bytes = room - size
            return
        joined = b"".join(buffers)[:room]
        self._file.append([joined], len(joined))
        self._owner.room_bytes = 0
        raise OSError(errno.ENOSPC, "No space left on device")

    def truncate(self, size: int) -> None:
        if self._owner.truncation_fails:
            raise OSError(errno.EIO, "Input/output error")
        self._file.truncate(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class FaultyFiles:
    """The real file system, with a disk that can be full and files that cannot be cut."""

    def __init__(self) -> None:
        self.room_bytes: int | None = None
        self.truncation_fails = False
        self.files_can_be_made = True

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        if create and not self.files_can_be_made:
            raise OSError(errno.ENOSPC, "No space left on device")
        return FaultyFile(REAL_FILES.open(path, create=create), self)

    def __getattr__(self, name: str) -> Any:
        return getattr(REAL_FILES, name)


@pytest.fixture
def faulty_files() -> Files:
    """A file system whose faults a test sets; none to begin with."""
    return FaultyFiles()

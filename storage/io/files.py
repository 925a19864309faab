"""The file system, as much of it as logs need: one seam for real files and faulty ones.

Nothing else in this package calls `open()` or `os`. A file is closed when the last
reference to it goes, so a slice handed to a connection stays readable after its segment
was deleted. Nothing is made durable unless `sync` is called.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

Buffer = bytes | bytearray | memoryview

IOV_MAX = 1024
"""How many buffers one `writev` takes; POSIX promises 16, Linux and macOS give this."""


class StorageFile(Protocol):
    """One open file, appended to at its end and read anywhere."""

    def fileno(self) -> int:
        """The descriptor, for `os.sendfile`."""

    def append(self, buffers: Sequence[Buffer], size: int) -> None:
        """Write all the buffers, `size` bytes together, at the end.

        Raises:
            OSError: not all could be written; some may have been.
        """

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`; fewer only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Cut the file back to `size` bytes."""

    def size(self) -> int:
        """How many bytes the file holds."""

    def sync(self) -> None:
        """Wait until all written is on the disk."""


class FileLock(Protocol):
    """A lock on a directory, held until released or until the process ends."""

    def release(self) -> None:
        """Let others have it."""


class Files(Protocol):
    """What logs ask of a file system. Paths are strings; every call may raise OSError."""

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        """Open a file for reading and appending, made empty first if `create` says so."""

    def read_bytes(self, path: str) -> bytes:
        """A whole small file."""

    def write_atomically(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Replace a small file so that readers find the old or the new, never a part."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory."""

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory."""

    def size(self, path: str) -> int:
        """A file's bytes."""

    def modified_ms(self, path: str) -> int:
        """When a file was last written, in milliseconds since the epoch."""

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it; no error if it is there."""

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory, replacing a file at the target."""

    def remove(self, path: str) -> None:
        """Delete a file; no error if it is gone."""

    def remove_tree(self, path: str) -> None:
        """Delete a directory and all in it; no error if it is gone."""

    def sync_directory(self, path: str) -> None:
        """Wait until a directory's names are on the disk."""

    def lock(self, path: str) -> FileLock | None:
        """Take an exclusive lock on a file, or None if another holds it."""

    def is_locked(self, path: str) -> bool:
        """Whether somebody holds the lock on a file; nobody is kept from taking it meanwhile."""


class RealFile:
    """A file of the operating system. Closed with its last reference."""

    __slots__ = ("_descriptor",)

    def __init__(self, path: str, flags: int) -> None:
        self._descriptor = -1
        self._descriptor = os.open(path, flags, 0o644)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # a default argument, since modules may be gone when the interpreter ends
        if self._descriptor >= 0:
            close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def append(self, buffers: Sequence[Buffer], size: int) -> None:
        """Write all the buffers at the end, in as many system calls as it takes."""
        if len(buffers) <= IOV_MAX:
            written = os.writev(self._descriptor, buffers)
            if written == size:
                return
            _write_rest(self._descriptor, buffers, written)
            return
        for start in range(0, len(buffers), IOV_MAX):
            part = buffers[start : start + IOV_MAX]
            _write_rest(self._descriptor, part, os.writev(self._descriptor, part))

    def read_at(self, size: int, position: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        if len(data) == size or not data:
            return data
        parts = [data]
        remaining = size - len(data)
        while remaining and (
            more := os.pread(self._descriptor, remaining, position + size - remaining)
        ):
            parts.append(more)
            remaining -= len(more)
        return b"".join(parts)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def sync(self) -> None:
        os.fsync(self._descriptor)


def _write_rest(descriptor: int, buffers: Sequence[Buffer], written: int) -> None:
    """Go on after a write that took only `written` bytes, as a nearly full disk does."""
    for buffer in buffers:
        if written >= len(buffer):
            written -= len(buffer)
            continue
        rest = memoryview(buffer)[written:]
        written = 0
        while rest:
            rest = rest[os.write(descriptor, rest) :]


class RealFileLock:
    """An `flock` on an open file."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others have it; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealFiles:
    """The operating system's files."""

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        return RealFile(path, flags | os.O_CREAT | os.O_TRUNC if create else flags)

    def read_bytes(self, path: str) -> bytes:
        # Not `open()`, whose buffers cost more than the reading, ten thousand times at a start.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            data = os.read(descriptor, size) if size else b""
            while len(data) < size and (more := os.read(descriptor, size - len(data))):
                data += more
            return data
        finally:
            os.close(descriptor)

    def write_atomically(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Write beside the file and rename over it."""
        temporary = path + ".tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            _write_rest(descriptor, [data], 0)
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def list_directory(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(path)

    def remove_tree(self, path: str) -> None:
        if not os.path.isdir(path):
            return
        for folder, folders, names in os.walk(path, topdown=False):
            for name in names:
                os.unlink(os.path.join(folder, name))
            for name in folders:
                os.rmdir(os.path.join(folder, name))
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> FileLock | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return RealFileLock(descriptor)

    def is_locked(self, path: str) -> bool:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # A shared lock: two that look at the same time do not take each other for the holder.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False


REAL_FILES: Files = RealFiles()
"""The one instance production uses; it holds no state."""

"""A broker's files on disks that can be full, or fail, at a test's word.

It is storage's file seam, so the broker meets a fault as it meets one of the operating system:
an error number from a call. What it makes of that is its own.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from ...storage.io.files import Buffer, FileLock, RealFile, RealFiles, StorageFile


class Disk:
    """What is wrong with one folder, and all that is in it.

    Attributes:
        path: the folder.
        room_bytes: how much can be written there; None: as much as the real disk takes.
        is_broken: whether every call fails.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.room_bytes: int | None = None
        self.is_broken = False

    def check(self) -> None:
        """Raises OSError: the disk is broken."""
        if self.is_broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.path)

    def take(self, size: int) -> int:
        """Take up room; returns how much of it there was."""
        if self.room_bytes is None:
            return size
        taken = min(size, self.room_bytes)
        self.room_bytes -= taken
        return taken

    def give_back(self, size: int) -> None:
        """Something was made shorter, or removed."""
        if self.room_bytes is not None:
            self.room_bytes += size

    def no_space(self) -> OSError:
        """What the operating system says of a full disk."""
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)


class FaultyFile(RealFile):
    """An open file of `FaultyFiles`."""

    __slots__ = ("_files", "_path")

    def __init__(self, files: FaultyFiles, path: str, flags: int) -> None:
        super().__init__(path, flags)
        self._files = files
        self._path = path

    def fileno(self) -> int:
        """The descriptor, for `os.sendfile`. Raises OSError: the disk is broken."""
        if self._files.disks:
            self._files.check(self._path)
        return super().fileno()

    def append(self, buffers: Sequence[Buffer], size: int) -> None:
        """Write at the end what there is room for. Raises OSError: it was not all."""
        if self._files.disks:
            disk = self._files.check(self._path)
            if disk is not None and (taken := disk.take(size)) < size:
                if taken:
                    super().append([b"".join(buffers)[:taken]], taken)
                raise disk.no_space()
        super().append(buffers, size)

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`. Raises OSError: the disk is broken."""
        if self._files.disks:
            self._files.check(self._path)
        return super().read_at(size, position)

    def truncate(self, size: int) -> None:
        """Cut the file back. Raises OSError: the disk is broken."""
        if self._files.disks:
            disk = self._files.check(self._path)
            if disk is not None:
                disk.give_back(max(self.size() - size, 0))
        super().truncate(size)

    def sync(self) -> None:
        """Wait until all is on the disk. Raises OSError: it is broken."""
        if self._files.disks:
            self._files.check(self._path)
        super().sync()


class FaultyFiles(RealFiles):
    """The operating system's files, but for what `disks` says.

    Attributes:
        disks: by their paths, those with which something is wrong.
    """

    def __init__(self) -> None:
        self.disks: dict[str, Disk] = {}

    def disk(self, path: str) -> Disk:
        """The disk that is a folder of this path, to have something wrong with it."""
        path = os.path.abspath(path)
        return self.disks.setdefault(path, Disk(path))

    def mend(self, path: str) -> None:
        """Nothing is wrong any more with the folder of this path."""
        self.disks.pop(os.path.abspath(path), None)

    def check(self, path: str) -> Disk | None:
        """The disk that a path lies on, if something is wrong with it.

        Raises:
            OSError: it is broken.
        """
        for root, disk in self.disks.items():
            if path == root or path.startswith(root + "/"):
                disk.check()
                return disk
        return None

    def _check_writable(self, path: str) -> None:
        """Something small is to be made. Raises OSError: the disk is broken, or full."""
        disk = self.check(path)
        if disk is not None and disk.room_bytes == 0:
            raise disk.no_space()

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        """Open a file for reading and appending; to make one takes room."""
        if create:
            self._check_writable(path)
        else:
            self.check(path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        return FaultyFile(self, path, flags | os.O_CREAT | os.O_TRUNC if create else flags)

    def read_bytes(self, path: str) -> bytes:
        """A whole small file."""
        self.check(path)
        return super().read_bytes(path)

    def write_atomically(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Replace a small file; that takes room for a moment."""
        disk = self.check(path)
        if disk is not None and disk.room_bytes is not None and disk.room_bytes < len(data):
            raise disk.no_space()
        super().write_atomically(path, data, sync=sync)

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        self.check(path)
        return super().list_directory(path)

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it, which takes room."""
        self._check_writable(path)
        super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        """Move a file or directory."""
        self.check(source)
        self.check(target)
        super().rename(source, target)

    def remove(self, path: str) -> None:
        """Delete a file, which gives room."""
        disk = self.check(path)
        if disk is not None and disk.room_bytes is not None and self.exists(path):
            disk.give_back(self.size(path))
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        """Delete a directory and all in it."""
        self.check(path)
        super().remove_tree(path)

    def sync_directory(self, path: str) -> None:
        """Wait until a directory's names are on the disk."""
        self.check(path)
        super().sync_directory(path)

    def lock(self, path: str) -> FileLock | None:
        """Take an exclusive lock on a file."""
        self.check(path)
        return super().lock(path)

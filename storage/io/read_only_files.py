"""Files that are only looked at, and a folder that no broker may open meanwhile.

What verifies a data folder must not be able to change it, and must work on a copy that it
may not write to.
"""

from __future__ import annotations

import fcntl
import os
from typing import NoReturn

from ..errors import LogDirectoryError
from .files import Buffer, FileLock, RealFile, RealFiles, StorageFile


class ReadOnlyFiles(RealFiles):
    """The operating system's files, opened for reading; whatever would change one is refused."""

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        """Open a file for reading.

        Raises:
            PermissionError: it was to be made.
        """
        if create:
            _refuse(path)
        return RealFile(path, os.O_RDONLY | os.O_CLOEXEC)

    def write_atomically(self, path: str, data: Buffer, *, sync: bool = False) -> None:
        """Refused."""
        _refuse(path)

    def make_directory(self, path: str) -> None:
        """Refused."""
        _refuse(path)

    def rename(self, source: str, target: str) -> None:
        """Refused."""
        _refuse(source)

    def remove(self, path: str) -> None:
        """Refused."""
        _refuse(path)

    def remove_tree(self, path: str) -> None:
        """Refused."""
        _refuse(path)

    def lock(self, path: str) -> FileLock | None:
        """Refused; see `keep_brokers_out`."""
        _refuse(path)


def _refuse(path: str) -> NoReturn:
    raise PermissionError(f"{path} is only looked at, not changed")


READ_ONLY_FILES = ReadOnlyFiles()
"""The one instance; it holds no state."""


class DirectoryLock:
    """A folder's `.lock`, held against odradek's brokers and against Kafka's.

    odradek takes an `flock`, Java a POSIX record lock; neither sees the other's.
    """

    def __init__(self, file: RealFile) -> None:
        self._file: RealFile | None = file

    def release(self) -> None:
        """Let others have it; may be called twice."""
        self._file = None  # closed, and so unlocked, with its last reference


def keep_brokers_out(path: str, *, exclusive: bool) -> DirectoryLock:
    """Hold a folder's lock file, so that no broker runs on it until `release`.

    Args:
        path: the `.lock` file.
        exclusive: also against others who only look; the file is made if it is not there.

    Raises:
        LogDirectoryError: a broker or a repair has it.
        FileNotFoundError: there is no such file, and `exclusive` is False.
    """
    flags = os.O_RDWR | os.O_CREAT if exclusive else os.O_RDONLY
    file = RealFile(path, flags | os.O_CLOEXEC)
    kind = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
    try:
        fcntl.flock(file.fileno(), kind)
        fcntl.lockf(file.fileno(), kind)
    except OSError as error:
        raise LogDirectoryError(
            f"a broker is running on {os.path.dirname(path)}: stop it first"
        ) from error
    return DirectoryLock(file)

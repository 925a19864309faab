"""A file system in memory that loses power, fills up and fails when a test says so.

`MemoryFiles` is storage's file seam. `cut_power_after` lets the n-th operation from now on,
and all after it, raise `PowerCut`; `after_power_cut` is then one of the file systems that
could be found at the next start, by the model of `memory_disk`. A process that is killed
loses nothing but its locks: `after_kill`.
"""

from __future__ import annotations

import errno
import io
import os
import random
from collections.abc import Collection, Sequence

from ....storage.io.files import Buffer, FileLock, StorageFile
from .disk_faults import DiskFault, PowerCut
from .memory_disk import MemoryDirectory, MemoryInode, MemoryNode


class MemoryFile:
    """One open file; it can be read after its name is gone."""

    __slots__ = ("_inode", "_owner", "path")

    def __init__(self, owner: MemoryFiles, path: str, inode: MemoryInode) -> None:
        self._owner = owner
        self._inode = inode
        self.path = path

    def fileno(self) -> int:
        """There is no descriptor: `FileSlice.read` goes through `read_at`.

        Raises:
            OSError: always.
        """
        raise io.UnsupportedOperation("a file in memory has no descriptor")

    def append(self, buffers: Sequence[Buffer], size: int) -> None:
        """Write at the end; as much as there is room for, then ENOSPC."""
        self._owner.operate("append", self.path)
        data = b"".join(buffers)
        assert len(data) == size
        room = self._owner.room_bytes
        if room is not None:
            self._owner.room_bytes = max(room - size, 0)
            data = data[:room]
        self._inode.append(data)
        self._inode.modified_ms = self._owner.now_ms
        if len(data) < size:
            raise _os_error(errno.ENOSPC, self.path)

    def read_at(self, size: int, position: int) -> bytes:
        """Up to `size` bytes from `position`."""
        self._owner.operate("read", self.path)
        return bytes(self._inode.content[position : position + size])

    def truncate(self, size: int) -> None:
        """Cut the file back."""
        self._owner.operate("truncate", self.path)
        if self._owner.room_bytes is not None:
            self._owner.room_bytes += max(len(self._inode.content) - size, 0)
        self._inode.truncate(size)
        self._inode.modified_ms = self._owner.now_ms

    def size(self) -> int:
        """How many bytes it holds."""
        self._owner.operate("size", self.path)
        return len(self._inode.content)

    def sync(self) -> None:
        """From now on its bytes outlive a power cut. Its name may not."""
        self._owner.operate("sync", self.path)
        self._inode.sync()


class MemoryFileLock:
    """Held until released, or until the process ends."""

    __slots__ = ("_owner", "_path")

    def __init__(self, owner: MemoryFiles, path: str) -> None:
        self._owner = owner
        self._path = path

    def release(self) -> None:
        """Let others have it; may be called twice."""
        self._owner.locked.discard(self._path)


class MemoryFiles:
    """A tree of directories and files, empty to begin with. Paths are absolute.

    Args:
        root: what is in it already.
    """

    def __init__(self, root: MemoryDirectory | None = None) -> None:
        self._root = root or MemoryDirectory()
        self.room_bytes: int | None = None
        """So many bytes can be written; what is removed or cut makes room. None: no limit."""
        self.faults: list[DiskFault] = []
        self.now_ms = 0
        """The time that files get which are written to."""
        self.operations = 0
        """How many there were so far."""
        self.locked: set[str] = set()
        self.is_looked_at = False
        """Whether it is read from outside, to which nothing happens, and which does not count."""
        self._power_cut_at: int | None = None

    # --- what goes wrong ---------------------------------------------------------------

    def fail(
        self,
        error: int,
        under: str = "",
        operations: Collection[str] | None = None,
        *,
        after: int = 0,
        times: int | None = None,
    ) -> DiskFault:
        """Let operations fail from now on; see `DiskFault`. Take it out of `faults` to heal."""
        fault = DiskFault(error, under, operations, after=after, times=times)
        self.faults.append(fault)
        return fault

    def cut_power_after(self, operations: int) -> None:
        """Let so many operations work; the next raises `PowerCut`, and all after it."""
        self._power_cut_at = self.operations + operations

    def after_power_cut(self, source: random.Random) -> MemoryFiles:
        """A file system that may be found when the power is back.

        Args:
            source: decides what of the unsynced is kept, dropped or torn.
        """

        def survivor(node: MemoryNode) -> MemoryNode:
            if isinstance(node, MemoryInode):
                return node.after_power_cut(source)
            return node.after_power_cut(source, survivor)

        after = MemoryFiles(self._root.after_power_cut(source, survivor))
        after.now_ms = self.now_ms
        return after

    def after_kill(self) -> MemoryFiles:
        """What the next process finds if this one is killed: everything, and no locks.

        What was not synced before can still be lost to a power cut later.
        """
        after = MemoryFiles(self._root)
        after.now_ms = self.now_ms
        return after

    def copy(self) -> MemoryFiles:
        """Another file system that holds the same, all of it on the disk."""

        def twin(node: MemoryNode) -> MemoryNode:
            if isinstance(node, MemoryInode):
                return MemoryInode(bytes(node.content), node.modified_ms)
            return MemoryDirectory({name: twin(each) for name, each in node.entries.items()})

        root = twin(self._root)
        assert isinstance(root, MemoryDirectory)
        other = MemoryFiles(root)
        other.now_ms = self.now_ms
        return other

    def operate(self, operation: str, path: str) -> None:
        """Count an operation and let it fail if it is to.

        Raises:
            OSError: a fault strikes.
            PowerCut: the power is gone.
        """
        if self.is_looked_at:
            return
        if self._power_cut_at is not None and self.operations >= self._power_cut_at:
            raise PowerCut(f"at operation {self.operations}, {operation} {path}")
        self.operations += 1
        for fault in self.faults:
            fault.strike(operation, path)

    def flip_bit(self, path: str, bit: int) -> None:
        """Change one bit of what is in a file and on the disk, counted from its beginning."""
        self._inode(path).content[bit // 8] ^= 1 << bit % 8

    # --- files -------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> StorageFile:
        """Open a file, made empty first if `create` says so."""
        self.operate("create" if create else "open", path)
        if not create:
            return MemoryFile(self, path, self._inode(path))
        directory, name = self._parent(path)
        node = directory.entries.get(name)
        if isinstance(node, MemoryDirectory):
            raise _os_error(errno.EISDIR, path)
        if node is None:
            node = MemoryInode()
            directory.add(name, node)
        else:
            self._make_room(node)
            node.truncate(0)
        node.modified_ms = self.now_ms
        return MemoryFile(self, path, node)

    def read_bytes(self, path: str) -> bytes:
        """A whole file."""
        self.operate("read", path)
        return bytes(self._inode(path).content)

    def write_atomically(self, path: str, data: bytes, *, sync: bool = False) -> None:
        """Write beside the file and rename over it."""
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        file.append([data], len(data))
        if sync:
            file.sync()
        self.rename(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def size(self, path: str) -> int:
        """A file's bytes."""
        self.operate("size", path)
        return len(self._inode(path).content)

    def modified_ms(self, path: str) -> int:
        """When it was last written."""
        self.operate("size", path)
        return self._inode(path).modified_ms

    # --- names -------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory."""
        return self._find(path) is not None

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory."""
        return isinstance(self._find(path), MemoryDirectory)

    def list_directory(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        self.operate("list", path)
        return sorted(self._directory(path).entries)

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it."""
        directory = self._root
        walked = ""
        for name in _parts(path):
            walked += "/" + name
            node = directory.entries.get(name)
            if node is None:
                self.operate("make_directory", walked)
                node = MemoryDirectory()
                directory.add(name, node)
            if not isinstance(node, MemoryDirectory):
                raise _os_error(errno.ENOTDIR, walked)
            directory = node

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name in the same directory."""
        self.operate("rename", target)
        directory, name = self._parent(source)
        target_directory, target_name = self._parent(target)
        if target_directory is not directory:
            raise _os_error(errno.EXDEV, target)
        if name not in directory.entries:
            raise _os_error(errno.ENOENT, source)
        replaced = directory.entries.get(target_name)
        if isinstance(replaced, MemoryDirectory):
            if replaced.entries:
                raise _os_error(errno.ENOTEMPTY, target)
        elif replaced is not None:
            self._make_room(replaced)
        directory.rename(name, target_name)

    def remove(self, path: str) -> None:
        """Delete a file; no error if it is gone."""
        self.operate("remove", path)
        node = self._find(path)
        if isinstance(node, MemoryDirectory):
            raise _os_error(errno.EISDIR, path)
        if node is not None:
            self._make_room(node)
            directory, name = self._parent(path)
            directory.remove(name)

    def remove_tree(self, path: str) -> None:
        """Delete a directory and all in it; no error if it is gone."""
        node = self._find(path)
        if not isinstance(node, MemoryDirectory):
            return
        for name, child in sorted(node.entries.items()):
            inner = os.path.join(path, name)
            if isinstance(child, MemoryDirectory):
                self.remove_tree(inner)
            else:
                self.remove(inner)
        self.operate("remove", path)
        directory, name = self._parent(path)
        directory.remove(name)

    def sync_directory(self, path: str) -> None:
        """From now on the names in a directory outlive a power cut."""
        self.operate("sync", path)
        self._directory(path).sync()

    def lock(self, path: str) -> FileLock | None:
        """Take an exclusive lock on a file, or None if another holds it."""
        self.operate("lock", path)
        directory, name = self._parent(path)
        if name not in directory.entries:
            directory.add(name, MemoryInode())
        if path in self.locked:
            return None
        self.locked.add(path)
        return MemoryFileLock(self, path)

    def is_locked(self, path: str) -> bool:
        """Whether somebody holds the lock on a file."""
        return path in self.locked

    # --- the tree ----------------------------------------------------------------------

    def _find(self, path: str) -> MemoryNode | None:
        node: MemoryNode | None = self._root
        for name in _parts(path):
            if not isinstance(node, MemoryDirectory):
                return None
            node = node.entries.get(name)
        return node

    def _directory(self, path: str) -> MemoryDirectory:
        node = self._find(path)
        if isinstance(node, MemoryDirectory):
            return node
        raise _os_error(errno.ENOENT if node is None else errno.ENOTDIR, path)

    def _inode(self, path: str) -> MemoryInode:
        node = self._find(path)
        if isinstance(node, MemoryInode):
            return node
        raise _os_error(errno.ENOENT if node is None else errno.EISDIR, path)

    def _parent(self, path: str) -> tuple[MemoryDirectory, str]:
        folder, name = os.path.split(path)
        return self._directory(folder), name

    def _make_room(self, inode: MemoryInode) -> None:
        if self.room_bytes is not None:
            self.room_bytes += len(inode.content)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _os_error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


__all__ = ["DiskFault", "MemoryFiles", "PowerCut"]

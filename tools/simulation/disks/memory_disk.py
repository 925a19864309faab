"""What a disk keeps of a file and of a directory when the power goes.

The model is that of a journalling file system (ext4, XFS, btrfs):

- What `sync` was called for is there. Nothing else is sure to be.
- Bytes written after it may be there, or not, or end anywhere, be it inside a record. The
  file may also have the right size and zeros in it, since a size can reach the disk before
  the data (delayed allocation), and blocks are written in any order.
- A file cut back may have its old bytes again, for as long as the cut was not synced. What
  was written after the cut, into the block the cut lies in, can even be on the disk while
  the rest of the old bytes is still there behind it.
- Names made, replaced and removed reach the disk in the order in which they were, within one
  directory; between directories, and between a name and the bytes of its file, there is no
  order. So a file renamed over another may be there under its new name, and empty.
- A rename within a directory happens or does not; never both names, never none.
"""

from __future__ import annotations

import random
from collections.abc import Callable

BLOCK_BYTES = 512
"""A sector: nothing smaller is kept or lost on its own in the middle of a file."""


class MemoryInode:
    """One file's bytes: as they are read, and as far as they are on the disk.

    Args:
        content: what is in it, and on the disk.
        modified_ms: the wall time of the last write.
    """

    __slots__ = ("_durable_bytes", "_past", "content", "modified_ms")

    def __init__(self, content: bytes = b"", modified_ms: int = 0) -> None:
        self.content = bytearray(content)
        self.modified_ms = modified_ms
        self._durable_bytes = len(content)
        """So many bytes of the oldest version are on the disk."""
        self._past: list[tuple[bytes, int]] = []
        """Versions that a cut made since the last sync has ended, and the size cut to."""

    def append(self, data: bytes) -> None:
        """Write behind the end."""
        self.content += data

    def truncate(self, size: int) -> None:
        """Cut back to `size` bytes, or fill up with zeros."""
        if size < len(self.content):
            self._past.append((bytes(self.content), size))
            del self.content[size:]
        else:
            self.content.extend(bytes(size - len(self.content)))

    def sync(self) -> None:
        """All that was done to it is on the disk."""
        self._past.clear()
        self._durable_bytes = len(self.content)

    def after_power_cut(self, source: random.Random) -> MemoryInode:
        """One of the files that the disk may hold.

        Args:
            source: decides which.
        """
        versions = [*self._past, (bytes(self.content), 0)]
        index = source.randrange(len(versions))
        durable_bytes = min([self._durable_bytes, *(cut for _, cut in versions[:index])])
        content = _torn(versions[index][0], durable_bytes, source)
        if index + 1 < len(versions) and source.random() < 0.3:
            content = _overwritten(content, versions[index + 1][0], versions[index][1])
        return MemoryInode(content, self.modified_ms)


def _torn(version: bytes, durable_bytes: int, source: random.Random) -> bytes:
    """Some of what lies behind the bytes that are sure to be there."""
    end = len(version)
    if durable_bytes == end:
        return version
    kind = source.choice(("kept", "kept", "dropped", "torn", "zeros", "holes"))
    if kind == "kept":
        return version
    if kind == "dropped":
        return version[:durable_bytes]
    end = source.randint(durable_bytes, end)
    if kind == "torn":
        return version[:end]
    content = bytearray(version[:end])
    if kind == "zeros":
        start = source.randint(durable_bytes, end)
        content[start:] = bytes(end - start)
        return bytes(content)
    for block in range(durable_bytes // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
        if source.random() < 0.4:
            first = max(block * BLOCK_BYTES, durable_bytes)
            last = min((block + 1) * BLOCK_BYTES, end)
            content[first:last] = bytes(last - first)
    return bytes(content)


def _overwritten(content: bytes, later: bytes, cut: int) -> bytes:
    """Old bytes again, but the block that was cut has what was written into it after."""
    block_end = -(-cut // BLOCK_BYTES) * BLOCK_BYTES
    fresh = later[cut : min(block_end, len(content))]
    return content[:cut] + fresh + content[cut + len(fresh) :]


class MemoryDirectory:
    """Names of files and directories: as they are seen, and as they are on the disk."""

    __slots__ = ("_durable", "_pending", "entries")

    def __init__(self, entries: dict[str, MemoryNode] | None = None) -> None:
        self.entries: dict[str, MemoryNode] = dict(entries or {})
        self._durable = dict(self.entries)
        self._pending: list[tuple[str | None, str | None, MemoryNode | None]] = []
        """A name that goes, a name that comes, and what it names."""

    def add(self, name: str, node: MemoryNode) -> None:
        """Give something a name."""
        self._change(None, name, node)

    def remove(self, name: str) -> None:
        """Take a name away."""
        self._change(name, None, None)

    def rename(self, source: str, target: str) -> None:
        """Give another name, in one step, to what `source` names."""
        self._change(source, target, self.entries[source])

    def sync(self) -> None:
        """All names are on the disk."""
        self._durable = dict(self.entries)
        self._pending.clear()

    def after_power_cut(
        self, source: random.Random, survivor: Callable[[MemoryNode], MemoryNode]
    ) -> MemoryDirectory:
        """One of the directories that the disk may hold.

        Args:
            source: decides which.
            survivor: makes what is left of a file or directory in it.
        """
        names = dict(self._durable)
        for change in self._pending[: source.randint(0, len(self._pending))]:
            _apply(names, *change)
        return MemoryDirectory({name: survivor(node) for name, node in names.items()})

    def _change(self, gone: str | None, come: str | None, node: MemoryNode | None) -> None:
        _apply(self.entries, gone, come, node)
        self._pending.append((gone, come, node))


MemoryNode = MemoryInode | MemoryDirectory


def _apply(
    names: dict[str, MemoryNode], gone: str | None, come: str | None, node: MemoryNode | None
) -> None:
    if gone is not None:
        del names[gone]
    if come is not None and node is not None:
        names[come] = node

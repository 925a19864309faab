"""Frames that were received and have not had their turn."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from ...protocol.frames import kept_in_own_memory


class WaitingFrames:
    """Some frames in order, copied in one piece out of the memory that they came in.

    One that came in memory of its own stays there.

    A frame may have a dozen bytes, and a receive thousands of them: each is made when it is taken.

    Args:
        frames: at least one.
    """

    __slots__ = ("_data", "_index", "_position", "_sizes")

    def __init__(self, frames: Sequence[memoryview]) -> None:
        self._data = (
            kept_in_own_memory(frames[0])
            if len(frames) == 1
            else memoryview(bytearray(b"".join(frames)))
        )
        self._sizes = array("I", map(len, frames))
        self._index = 0
        self._position = 0

    def __len__(self) -> int:
        """How many are left."""
        return len(self._sizes) - self._index

    @property
    def held_bytes(self) -> int:
        """What they take in memory until the last is taken."""
        return len(self._data) + self._sizes.itemsize * len(self._sizes)

    def take(self) -> memoryview:
        """The next one."""
        size = self._sizes[self._index]
        frame = self._data[self._position : self._position + size]
        self._position += size
        self._index += 1
        return frame

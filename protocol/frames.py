"""Frames: a length of four bytes, and as many bytes after it. Sans-IO.

A reader is handed what was received and gives back whole frames as memoryviews of it,
copying nothing. Only a frame cut off by the end of what was received is kept, in a
buffer that grows as its bytes arrive: announcing a large frame costs the peer its
sending, not us our memory.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import overload

LENGTH_BYTES = 4
TAIL_BYTES_MIN = 32 * 1024
"""What an unfinished frame's buffer starts with, if the frame is as long: space for a batch of the
usual 16 KB in one receive, however little of it has come."""

FRAMES_AT_ONCE_MAX = 1000
"""Frames that were received together are made at once, up to so many."""

_unpack_length = struct.Struct(">i").unpack_from


class ManyFrames(Sequence[memoryview]):
    """Frames of one buffer, most of which are made on access.

    Args:
        first: those that are there.
        buffer: what was received.
        starts: where the others begin in it, after their lengths.
    """

    def __init__(self, first: list[memoryview], buffer: memoryview, starts: array[int]) -> None:
        self.first = first
        self._buffer = buffer
        self._starts = starts

    def __len__(self) -> int:
        return len(self.first) + len(self._starts)

    @overload
    def __getitem__(self, index: int) -> memoryview: ...

    @overload
    def __getitem__(self, index: slice) -> list[memoryview]: ...

    def __getitem__(self, index: int | slice) -> memoryview | list[memoryview]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        if index < len(self.first):
            return self.first[index]
        start = self._starts[index - len(self.first)]
        size: int = _unpack_length(self._buffer, start - LENGTH_BYTES)[0]
        return self._buffer[start : start + size]


class FrameReader:
    """Splits one connection's bytes into frames.

    Args:
        frame_bytes_max: larger frames are the peer's fault (`socket.request.max.bytes`).
        trusted_bytes: of a frame that announces no more than this, all space is allocated at once:
            for a client, which limits its responses itself.
    """

    __slots__ = ("_frame_bytes_max", "_tail", "_tail_filled", "_trusted_bytes", "failure")

    def __init__(self, frame_bytes_max: int, trusted_bytes: int = 0) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._trusted_bytes = trusted_bytes
        self._tail: bytearray | None = None
        self._tail_filled = 0
        self.failure: str | None = None
        """What the peer did wrong, once it has; frames before it still count, none after."""

    @property
    def has_unfinished_frame(self) -> bool:
        """Whether part of a frame has come and the rest has not."""
        return self._tail is not None

    def tail_region(self) -> memoryview | None:
        """Where the rest of an unfinished frame should be received to, if there is one.

        Receiving there spares a copy; hand what came to `feed_tail`. The region never goes
        past the frame's end.
        """
        tail = self._tail
        if tail is None:
            return None
        if self._tail_filled == len(tail):
            self._grow(tail)
            tail = self._tail
            assert tail is not None
        return memoryview(tail)[self._tail_filled :]

    def feed_tail(self, received_bytes: int) -> memoryview | None:
        """Note bytes received into `tail_region`; returns the frame if it is now whole."""
        tail = self._tail
        assert tail is not None, "no frame is unfinished"
        self._tail_filled += received_bytes
        if self._tail_filled < LENGTH_BYTES:
            return None
        size = _unpack_length(tail)[0]
        if not self._allows(size) or self._tail_filled < LENGTH_BYTES + size:
            return None
        self._tail = None
        return memoryview(tail)[LENGTH_BYTES : LENGTH_BYTES + size]

    def feed(self, received: memoryview) -> Sequence[memoryview]:
        """Split what was received; the unfinished end of it is copied and kept.

        Only to be called while no frame is unfinished.
        """
        frames: list[memoryview] = []
        if self.failure is not None:
            return frames
        position, end = 0, len(received)
        if (
            LENGTH_BYTES <= end <= self._frame_bytes_max
            and _unpack_length(received)[0] == end - LENGTH_BYTES
        ):  # one, and all of it, as most come
            frames.append(received[LENGTH_BYTES:])
            return frames
        while end - position >= LENGTH_BYTES:
            size = _unpack_length(received, position)[0]
            if not 0 <= size <= self._frame_bytes_max:
                self._allows(size)
                return frames
            frame_end = position + LENGTH_BYTES + size
            if frame_end > end:
                break
            frames.append(received[position + LENGTH_BYTES : frame_end])
            position = frame_end
            if len(frames) == FRAMES_AT_ONCE_MAX:
                return self._feed_many(frames, received, position)
        if position < end:
            self._keep(received[position:])
        return frames

    def _feed_many(
        self, first: list[memoryview], received: memoryview, position: int
    ) -> Sequence[memoryview]:
        """Go on without making the frames: four bytes can be one, which is a view of 184."""
        starts = array("Q")
        end = len(received)
        while end - position >= LENGTH_BYTES:
            size = _unpack_length(received, position)[0]
            if not self._allows(size):
                return ManyFrames(first, received, starts)
            if position + LENGTH_BYTES + size > end:
                break
            starts.append(position + LENGTH_BYTES)
            position += LENGTH_BYTES + size
        if position < end:
            self._keep(received[position:])
        return ManyFrames(first, received, starts)

    def receive(self, received: memoryview) -> Sequence[memoryview]:
        """Split any piece of the stream: what `feed_tail` and `feed` do, with a copy of tails."""
        frames: list[memoryview] = []
        while len(received) and not self.failure and (region := self.tail_region()) is not None:
            taken = min(len(region), len(received))
            region[:taken] = received[:taken]
            frame = self.feed_tail(taken)
            if frame is not None:
                frames.append(frame)
            received = received[taken:]
        if len(received) and not self.failure:
            rest = self.feed(received)
            if not frames:
                return rest
            if isinstance(rest, ManyFrames):
                rest.first[:0] = frames
                return rest
            frames += rest
        return frames

    def _keep(self, part: memoryview) -> None:
        size_known = len(part) >= LENGTH_BYTES
        frame_bytes = LENGTH_BYTES + (_unpack_length(part)[0] if size_known else 0)
        capacity = self._capacity_for(frame_bytes, len(part))
        self._tail = tail = bytearray(max(capacity, len(part)))
        tail[: len(part)] = part
        self._tail_filled = len(part)

    def _grow(self, tail: bytearray) -> None:
        frame_bytes = LENGTH_BYTES
        if self._tail_filled >= LENGTH_BYTES:
            frame_bytes += _unpack_length(tail)[0]
        grown = bytearray(self._capacity_for(frame_bytes, len(tail)))
        grown[: self._tail_filled] = tail
        self._tail = grown

    def _capacity_for(self, frame_bytes: int, arrived: int) -> int:
        """Never more than twice what has arrived: the announced length is only a claim."""
        if frame_bytes <= self._trusted_bytes:
            return frame_bytes
        return min(frame_bytes, max(2 * arrived, TAIL_BYTES_MIN))

    def _allows(self, size: int) -> bool:
        if 0 <= size <= self._frame_bytes_max:
            return True
        if size < 0:
            self.failure = f"a frame announces a negative length of {size} bytes"
        else:
            self.failure = (
                f"a frame announces {size} bytes, "
                f"more than socket.request.max.bytes={self._frame_bytes_max} allows"
            )
        return False

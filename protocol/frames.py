"""Frames: a length of four bytes, and as many bytes after it. Sans-IO.

A reader is handed what was received and gives back whole frames as memoryviews of it,
copying nothing. A frame cut off by the end of what was received is kept in a buffer of its length
(`frame_buffers.py`). And who takes only so many frames at once finds the others kept in one piece:
a frame may have four bytes, and a view of it has 184.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable

from ..common.named_tuple import NamedTuple
from .frame_buffers import FrameBuffer, has_own_memory, new_frame_buffer

LENGTH_BYTES = 4
UNRESERVED_BYTES = 4 * 1024
"""Shorter frames need no memory reserved: they come in one receive, or their rest does."""

_unpack_length = struct.Struct(">i").unpack_from


class FrameLimit(NamedTuple):
    """How long a frame may be, in bytes, and the setting that says so."""

    setting: str
    bytes_max: int


def kept_in_own_memory(frame: memoryview) -> memoryview:
    """The frame, copied unless it has memory of its own: what it came in may be used again."""
    return frame if has_own_memory(frame) else memoryview(bytearray(frame))


class FrameReader:
    """Splits one connection's bytes into frames.

    Args:
        frame_bytes_max: larger frames are the peer's fault (`socket.request.max.bytes`).

    Attributes:
        limit: of frames from now on.
        reserve: called with the length of a frame that did not come in one piece, before the rest
            of it is received; None from it means that nothing may be received now. What else it
            gives is kept as long as the frame's memory.
        reservation: for the unfinished frame; None where nothing was reserved.
    """

    __slots__ = (
        "_rest_position",
        "_tail",
        "_tail_filled",
        "failure",
        "limit",
        "reservation",
        "reserve",
        "rest",
    )

    def __init__(self, frame_bytes_max: int) -> None:
        self.limit = FrameLimit("socket.request.max.bytes", frame_bytes_max)
        self.rest: memoryview | None = None
        """Where the frames lie that `take` gives, if there are any."""
        self._rest_position = 0
        self.reserve: Callable[[int], object | None] | None = None
        self.reservation: object | None = None
        self._tail: memoryview | None = None
        self._tail_filled = 0
        self.failure: str | None = None
        """What the peer did wrong, once it has; frames before it still count, none after."""

    @property
    def has_unfinished_frame(self) -> bool:
        """Whether part of a frame has come and the rest has not."""
        return self._tail is not None

    def __bool__(self) -> bool:
        """Whether `take` has a frame."""
        return self.rest is not None

    @property
    def held_bytes(self) -> int:
        """How much memory it keeps."""
        rest, tail = self.rest, self._tail
        return (0 if rest is None else len(rest)) + (0 if tail is None else len(tail))

    @property
    def arrived_bytes(self) -> int:
        """How much of the unfinished frame has come."""
        return self._tail_filled

    def close(self) -> None:
        """Nothing more comes."""
        self._tail = self.rest = self.reserve = self.reservation = None

    def may_receive(self) -> bool:
        """Whether there is memory for the unfinished frame, if it needs some."""
        tail = self._tail
        if tail is None or self.reserve is None or self.reservation is not None:
            return True
        frame_bytes = self._frame_bytes(tail)
        if frame_bytes <= UNRESERVED_BYTES:
            return True
        self.reservation = self.reserve(frame_bytes)
        return self.reservation is not None

    def _frame_bytes(self, tail: memoryview) -> int:
        """How long the unfinished frame is, as far as that has come."""
        if self._tail_filled < LENGTH_BYTES:
            return LENGTH_BYTES
        return LENGTH_BYTES + int(_unpack_length(tail)[0])

    def tail_region(self) -> memoryview | None:
        """Where the rest of an unfinished frame should be received to, if there is one.

        Receiving there spares a copy; hand what came to `feed_tail`. The region never goes
        past the frame's end. It is empty while there is no memory for the frame.
        """
        if self._tail is None:
            return None
        return self._open_region(self._tail) if self.may_receive() else memoryview(b"")

    def _open_region(self, tail: memoryview) -> memoryview:
        if self._tail_filled == len(tail):
            part, tail = tail, new_frame_buffer(self._frame_bytes(tail), self.reservation)
            tail[: self._tail_filled] = part
            self._tail = tail
        return tail[self._tail_filled :]

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
        self._tail = self.reservation = None
        return tail[LENGTH_BYTES : LENGTH_BYTES + size]

    def feed(self, received: memoryview, frames_max: int = sys.maxsize) -> list[memoryview]:
        """Split what was received; the unfinished end of it is copied and kept.

        Only to be called while no frame is unfinished, and none is left to `take`.

        Args:
            received: a piece of the stream.
            frames_max: how many frames to return; those behind them are copied, for `take`.
        """
        frames: list[memoryview] = []
        if self.failure is not None:
            return frames
        position, end = 0, len(received)
        if (
            LENGTH_BYTES <= end <= self.limit.bytes_max
            and _unpack_length(received)[0] == end - LENGTH_BYTES
        ):  # one, and all of it, as most come
            frames.append(received[LENGTH_BYTES:])
            return frames
        while end - position >= LENGTH_BYTES:
            if len(frames) >= frames_max:
                self.rest, self._rest_position = memoryview(bytearray(received[position:])), 0
                self._end_rest_unless_whole()
                return frames
            size = _unpack_length(received, position)[0]
            if not 0 <= size <= self.limit.bytes_max:
                self._allows(size)
                return frames
            frame_end = position + LENGTH_BYTES + size
            if frame_end > end:
                break
            frames.append(received[position + LENGTH_BYTES : frame_end])
            position = frame_end
        if position < end:
            self._keep(received[position:])
        return frames

    def take(self) -> memoryview:
        """The next of the frames that were more than `feed` was to return."""
        rest = self.rest
        assert rest is not None, "no frame is left"
        begin = self._rest_position + LENGTH_BYTES
        self._rest_position = end = begin + _unpack_length(rest, begin - LENGTH_BYTES)[0]
        self._end_rest_unless_whole()
        return rest[begin:end]

    def _end_rest_unless_whole(self) -> None:
        """Where no whole frame comes next, what does is an unfinished one, or none at all."""
        rest, position = self.rest, self._rest_position
        assert rest is not None
        if len(rest) - position >= LENGTH_BYTES:
            size = _unpack_length(rest, position)[0]
            if not self._allows(size):
                self.rest = None
                return
            if position + LENGTH_BYTES + size <= len(rest):
                return
        self.rest = None
        if position < len(rest):
            self._keep(rest[position:])

    def receive(self, received: memoryview, frames_max: int = sys.maxsize) -> list[memoryview]:
        """Split any piece of the stream: what `feed_tail` and `feed` do, with a copy of tails."""
        frames: list[memoryview] = []
        while len(received) and not self.failure and self._tail is not None:
            region = self._open_region(self._tail)
            taken = min(len(region), len(received))
            region[:taken] = received[:taken]
            frame = self.feed_tail(taken)
            if frame is not None:
                frames.append(frame)
            received = received[taken:]
        if len(received) and not self.failure:
            frames += self.feed(received, frames_max)
        return frames

    def _keep(self, part: memoryview) -> None:
        self._tail, self._tail_filled = part, len(part)
        if self.may_receive():
            self._open_region(part)
        else:
            self._tail = memoryview(FrameBuffer(part))

    def _allows(self, size: int) -> bool:
        if 0 <= size <= self.limit.bytes_max:
            return True
        if size < 0:
            self.failure = f"a frame announces a negative length of {size} bytes"
        else:
            self.failure = (
                f"a frame announces {size} bytes, "
                f"more than {self.limit.setting}={self.limit.bytes_max} allows"
            )
        return False

"""What a broker sends, cut into answers, each passed on at once or once it is whole. Sans-IO."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from ...protocol.varints import Buffer

LENGTH_BYTES = 4
START_BYTES = 4
"""As much of an answer as says what it answers."""

_unpack_length = Struct(">i").unpack_from

Begin = Callable[[Buffer], bool]
"""Is given the first four bytes of an answer, or all if there are fewer; says whether it is held
until it is whole."""

Finish = Callable[[Buffer], Buffer | None]
"""Is given a whole answer, once for each `Begin`; what it returns is sent in its place, if it was
held."""


class AnswerStream:
    """Takes what a broker has sent and says what a client is to be sent.

    Args:
        frame_bytes_max: larger answers are a failure.
        begin: is asked of each answer.
        finish: is given each answer.

    Attributes:
        failure: what the broker did wrong, once it has; nothing after that is passed on.
    """

    def __init__(self, frame_bytes_max: int, begin: Begin, finish: Finish) -> None:
        self.failure: str | None = None
        self._frame_bytes_max = frame_bytes_max
        self._begin = begin
        self._finish = finish
        self._part = bytearray()
        self._wanted = LENGTH_BYTES
        self._is_held = True

    def feed(self, received: memoryview) -> list[Buffer]:
        """What is to be sent now that this was received."""
        forward: list[Buffer] = []
        if not self._part and self.failure is None:
            received = self._feed_whole(received, forward)
        while len(received) and self.failure is None:
            piece = received[: self._wanted - len(self._part)]
            self._part += piece
            if not self._is_held:
                forward.append(piece)
            received = received[len(piece) :]
            if len(self._part) == self._wanted and self._step(forward):
                received = self._feed_whole(received, forward)
        return forward

    def _feed_whole(self, received: memoryview, forward: list[Buffer]) -> memoryview:
        """Take the answers that are there from start to end; returns the rest."""
        start = position = 0
        while len(received) - position >= LENGTH_BYTES:
            size = _unpack_length(received, position)[0]
            if not self._allows(size) or len(received) - position - LENGTH_BYTES < size:
                break
            end = position + LENGTH_BYTES + size
            frame = received[position + LENGTH_BYTES : end]
            is_held = self._begin(frame[:START_BYTES])
            replacement = self._finish(frame)
            if is_held and replacement is not None:
                if position > start:
                    forward.append(received[start:position])
                forward.append(_framed(replacement))
                start = end
            position = end
        if position > start:
            forward.append(received[start:position])
        return received[position:] if self.failure is None else received[len(received) :]

    def _step(self, forward: list[Buffer]) -> bool:
        """Go on from a length, a start or a whole answer; whether it was the last."""
        part = self._part
        size = _unpack_length(part)[0]
        if len(part) == LENGTH_BYTES:
            if not self._allows(size):
                return False
            if size:
                self._wanted = LENGTH_BYTES + min(size, START_BYTES)
                return False
        if self._is_held and len(part) <= LENGTH_BYTES + START_BYTES:
            self._is_held = self._begin(bytes(part[LENGTH_BYTES:]))
            if not self._is_held:
                forward.append(bytes(part))
        if len(part) < LENGTH_BYTES + size:
            self._wanted = LENGTH_BYTES + size
            return False
        replacement = self._finish(memoryview(part)[LENGTH_BYTES:])
        if self._is_held:
            forward.append(part if replacement is None else _framed(replacement))
        self._part, self._wanted, self._is_held = bytearray(), LENGTH_BYTES, True
        return True

    def _allows(self, size: int) -> bool:
        if 0 <= size <= self._frame_bytes_max:
            return True
        self.failure = f"an answer announces {size:,} bytes"
        return False


def _framed(content: Buffer) -> bytes:
    return len(content).to_bytes(LENGTH_BYTES, "big") + bytes(content)

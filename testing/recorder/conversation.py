"""One connection's requests and answers: which belongs to which, and what is passed on. Sans-IO.

A broker answers the requests of a connection in their order. Some it does not answer (Produce
with acks=0), and what follows SaslHandshake v0 has no header at all; so this keeps what is under
way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...protocol.frames import LENGTH_BYTES
from ...protocol.headers import read_request_header, read_request_start
from ...protocol.messages import request_message
from ...protocol.varints import Buffer, read_unsigned_varint
from .recording import NO_API, FrameKind

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
        begin: is called with the start of each answer.
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
        self._target_size = LENGTH_BYTES
        self._is_held = True

    def feed(self, received: memoryview) -> list[Buffer]:
        """What is to be sent now that this was received."""
        forward: list[Buffer] = []
        if not self._part and self.failure is None:
            received = self._feed_whole(received, forward)
        while len(received) and self.failure is None:
            piece = received[: self._target_size - len(self._part)]
            self._part += piece
            if not self._is_held:
                forward.append(piece)
            received = received[len(piece) :]
            if len(self._part) == self._target_size and self._step(forward):
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
                self._target_size = LENGTH_BYTES + min(size, START_BYTES)
                return False
        if self._is_held and len(part) <= LENGTH_BYTES + START_BYTES:
            self._is_held = self._begin(bytes(part[LENGTH_BYTES:]))
            if not self._is_held:
                forward.append(bytes(part))
        if len(part) < LENGTH_BYTES + size:
            self._target_size = LENGTH_BYTES + size
            return False
        replacement = self._finish(memoryview(part)[LENGTH_BYTES:])
        if self._is_held:
            forward.append(part if replacement is None else _framed(replacement))
        self._part, self._target_size, self._is_held = bytearray(), LENGTH_BYTES, True
        return True

    def _allows(self, size: int) -> bool:
        if 0 <= size <= self._frame_bytes_max:
            return True
        self.failure = f"an answer announces {size:,} bytes"
        return False


def _framed(content: Buffer) -> bytes:
    return len(content).to_bytes(LENGTH_BYTES, "big") + bytes(content)


UNDER_WAY_MAX = 10_000
"""Requests of a connection without an answer; clients have five or so."""

_unpack_int16 = Struct(">h").unpack_from
_unpack_int32 = Struct(">i").unpack_from

KNOWN_APIS = frozenset(ApiKey)


class PendingRequest(NamedTuple):
    """A request that waits for its answer.

    Attributes:
        kind: REQUEST or TOKEN.
        time_ns: when it was whole.
        api_key: `NO_API` of a token, and of what is too short to have one.
        api_version: likewise.
        correlation_id: likewise.
    """

    kind: FrameKind
    time_ns: int
    api_key: int = NO_API
    api_version: int = NO_API
    correlation_id: int = NO_API


class TooManyRequests(Exception):
    """A client sends request after request, and the broker does not answer."""


class Conversation:
    """One connection's requests and answers."""

    def __init__(self) -> None:
        self._under_way: deque[PendingRequest] = deque()
        self._has_raw_tokens = False

    def add_request(self, frame: Buffer, time_ns: int) -> PendingRequest:
        """Note a request.

        Args:
            frame: all of it but the length.
            time_ns: when it came.

        Raises:
            TooManyRequests: more than `UNDER_WAY_MAX` have no answer.
        """
        pending = self._recognise(frame, time_ns)
        if pending.api_key == ApiKey.SASL_HANDSHAKE and pending.api_version == 0:
            self._has_raw_tokens = True
        if pending.api_key != ApiKey.PRODUCE or is_answered(frame, pending.api_version):
            if len(self._under_way) == UNDER_WAY_MAX:
                raise TooManyRequests(
                    f"{UNDER_WAY_MAX:,} requests of the connection are unanswered"
                )
            self._under_way.append(pending)
        return pending

    def _recognise(self, frame: Buffer, time_ns: int) -> PendingRequest:
        kind = FrameKind.TOKEN if self._has_raw_tokens else FrameKind.REQUEST
        try:
            start = read_request_start(frame)
        except ProtocolError:
            return PendingRequest(kind, time_ns)
        if self._has_raw_tokens:
            if not _is_known(*start[:2]):
                return PendingRequest(kind, time_ns)
            self._has_raw_tokens = False
        return PendingRequest(FrameKind.REQUEST, time_ns, *start)

    def answered_by(self, start: Buffer) -> PendingRequest | None:
        """The request that an answer belongs to, left where it is; None if there is none.

        Args:
            start: the first four bytes of the answer.
        """
        if not self._under_way:
            return None
        first = self._under_way[0]
        if first.kind is FrameKind.TOKEN:
            return first
        if len(start) < 4:
            return None
        correlation_id = _unpack_int32(start)[0]
        # Mostly it is the first.
        for pending in self._under_way:
            if pending.correlation_id == correlation_id and pending.kind is FrameKind.REQUEST:
                return pending
        return None

    def settle(self, pending: PendingRequest) -> None:
        """Its answer has come; the requests before it will have none."""
        while self._under_way.popleft() is not pending:
            pass


def _is_known(api_key: int, version: int) -> bool:
    """Whether there is such a request; no step of authentication begins like one, since text
    makes versions that are far too large."""
    return api_key in KNOWN_APIS and version in request_message(api_key).versions


def is_answered(frame: Buffer, version: int) -> bool:
    """Whether a Produce request is answered; without acks it is not.

    Args:
        frame: all of it but the length.
        version: of it.
    """
    try:
        _, _, position = read_request_header(frame)
        if version >= 9:
            size, position = read_unsigned_varint(frame, position)
            position += max(size - 1, 0)
        elif version >= 3:
            size = _unpack_int16(frame, position)[0]
            position += 2 + max(size, 0)
        acks = frame[position : position + 2]
    except (ProtocolError, IndexError, StructError):
        return True  # no Produce that a broker understands
    return bytes(acks) != b"\0\0"

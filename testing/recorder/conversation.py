"""What is said on one connection: which answer belongs to which request. Sans-IO.

A broker answers the requests of a connection in their order. Some it does not answer (Produce
with acks=0), and what follows SaslHandshake v0 has no header at all; so this keeps what is under
way.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...protocol.headers import read_request_header, read_request_start
from ...protocol.messages import request_message
from ...protocol.varints import Buffer, read_unsigned_varint
from .recorded import NO_API, FrameKind

UNDER_WAY_MAX = 10_000
"""Requests of a connection without an answer; clients have five or so."""

_unpack_int16 = Struct(">h").unpack_from
_unpack_int32 = Struct(">i").unpack_from

KNOWN_APIS = frozenset(ApiKey)


class Asked(NamedTuple):
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
    """A client asks and asks, and the broker does not answer."""


class Conversation:
    """One connection's requests and answers."""

    def __init__(self) -> None:
        self._under_way: deque[Asked] = deque()
        self._has_raw_tokens = False

    def ask(self, frame: Buffer, time_ns: int) -> Asked:
        """Note a request.

        Args:
            frame: all of it but the length.
            time_ns: when it came.

        Raises:
            TooManyRequests: more than `UNDER_WAY_MAX` have no answer.
        """
        asked = self._recognise(frame, time_ns)
        if asked.api_key == ApiKey.SASL_HANDSHAKE and asked.api_version == 0:
            self._has_raw_tokens = True
        if asked.api_key != ApiKey.PRODUCE or is_answered(frame, asked.api_version):
            if len(self._under_way) == UNDER_WAY_MAX:
                raise TooManyRequests(
                    f"{UNDER_WAY_MAX:,} requests of the connection are unanswered"
                )
            self._under_way.append(asked)
        return asked

    def _recognise(self, frame: Buffer, time_ns: int) -> Asked:
        kind = FrameKind.TOKEN if self._has_raw_tokens else FrameKind.REQUEST
        try:
            start = read_request_start(frame)
        except ProtocolError:
            return Asked(kind, time_ns)
        if self._has_raw_tokens:
            if not _is_known(*start[:2]):
                return Asked(kind, time_ns)
            self._has_raw_tokens = False
        return Asked(FrameKind.REQUEST, time_ns, *start)

    def answered_by(self, start: Buffer) -> Asked | None:
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
        for asked in self._under_way:
            if asked.correlation_id == correlation_id and asked.kind is FrameKind.REQUEST:
                return asked
        return None

    def settle(self, asked: Asked) -> None:
        """Its answer has come; the requests before it will have none."""
        while self._under_way.popleft() is not asked:
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

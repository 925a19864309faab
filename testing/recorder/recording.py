"""What is recorded: connections, frames, notes; and the listeners that get it.

A file that cannot be written any more ends nobody's traffic.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import NamedTuple, Protocol

from ...protocol.varints import Buffer
from .addresses import Address

NO_API = -1
"""The API key, version and correlation id of what has none."""


class FrameKind(IntEnum):
    """What a frame is."""

    REQUEST = 1
    ANSWER = 2
    TOKEN = 3
    """A step of authentication without a header, as after SaslHandshake v0; by a client."""
    TOKEN_ANSWER = 4
    UNASKED = 5
    """An answer to no request that is known."""

    @property
    def is_from_client(self) -> bool:
        """Whether the client sent it."""
        return self in (FrameKind.REQUEST, FrameKind.TOKEN)


class RecordedFrame(NamedTuple):
    """One frame, as it was sent: an answer still has the broker's own addresses.

    Attributes:
        kind: what it is.
        connection: the number of the connection, from 1.
        time_ns: when all of it had come, in nanoseconds since 1970.
        api_key: also of an answer; `NO_API` where it has none.
        api_version: likewise, of the request.
        correlation_id: likewise.
        content: all bytes but the length.
        is_redacted: whether secrets were taken out of it.
        waited_ns: for an answer, how long after its request it came.
    """

    kind: FrameKind
    connection: int
    time_ns: int
    api_key: int
    api_version: int
    correlation_id: int
    content: Buffer
    is_redacted: bool = False
    waited_ns: int = 0


class RecordedConnection(NamedTuple):
    """A client's connection.

    Attributes:
        number: from 1, in the order in which they were opened.
        time_ns: when, in nanoseconds since 1970.
        client: the client's address.
        broker: the broker's address, in numbers.
        broker_name: the broker's address as clients know it.
    """

    number: int
    time_ns: int
    client: Address
    broker: Address
    broker_name: Address


class RecordedEnd(NamedTuple):
    """The end of a connection.

    Attributes:
        number: of the connection.
        time_ns: when, in nanoseconds since 1970.
        is_by_client: whether the client ended it first.
        reason: a sentence, if there was more to it.
    """

    number: int
    time_ns: int
    is_by_client: bool
    reason: str = ""


class RecordedNote(NamedTuple):
    """Something that is worth knowing, in a sentence."""

    time_ns: int
    text: str


class RecordingListener(Protocol):
    """Gets what is recorded, in the order in which it happened."""

    def opened(self, connection: RecordedConnection) -> None:
        """A connection was made."""

    def passed(self, frame: RecordedFrame) -> None:
        """A frame has come whole."""

    def ended(self, end: RecordedEnd) -> None:
        """A connection is over."""

    def noted(self, note: RecordedNote) -> None:
        """Something else happened."""


class Recording:
    """Tells several listeners, and leaves out those that fail.

    Args:
        listeners: in the order in which they are called.

    Attributes:
        connections_count: how many there were.
        frames_count: how many have passed.
        failures: a sentence for each that failed; what it has written up to then is whole.
    """

    def __init__(self, listeners: Iterable[RecordingListener]) -> None:
        self._listeners = list(listeners)
        self.connections_count = 0
        self.frames_count = 0
        self.failures: list[str] = []

    def opened(self, connection: RecordedConnection) -> None:
        """A connection was made."""
        self.connections_count += 1
        self._tell(lambda listener: listener.opened(connection))

    def passed(self, frame: RecordedFrame) -> None:
        """A frame has come whole."""
        self.frames_count += 1
        for listener in self._listeners:  # a list that is replaced whole
            try:
                listener.passed(frame)
            except Exception as error:  # a listener may be anybody's, and traffic goes on
                self._leave_out(listener, error)

    def ended(self, end: RecordedEnd) -> None:
        """A connection is over."""
        self._tell(lambda listener: listener.ended(end))

    def noted(self, note: RecordedNote) -> None:
        """Something else happened."""
        self._tell(lambda listener: listener.noted(note))

    def note(self, text: str) -> None:
        """Something happens now."""
        self.noted(RecordedNote(time.time_ns(), text))

    def _tell(self, what: Callable[[RecordingListener], None]) -> None:
        for listener in self._listeners:
            try:
                what(listener)
            except Exception as error:  # as above
                self._leave_out(listener, error)

    def _leave_out(self, listener: RecordingListener, error: Exception) -> None:
        self._listeners = [each for each in self._listeners if each is not listener]
        path = os.fspath(getattr(listener, "path", ""))
        if path and isinstance(error, OSError):
            failure = f"{path} is not written any more: {error.strerror}; up to here it is whole"
        else:
            name = path or type(listener).__name__
            failure = f"{name} gets nothing more, since it raised {error!r}"
        self.failures.append(failure)
        self.note(failure)

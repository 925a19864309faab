"""All who are told what is recorded, as one.

A file that cannot be written any more ends nobody's traffic.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from .recorded import Listener, RecordedConnection, RecordedEnd, RecordedFrame, RecordedNote


class Recording:
    """Tells several listeners, and leaves out those that fail.

    Args:
        listeners: in the order in which they are told.

    Attributes:
        connections_count: how many there were.
        frames_count: how many have passed.
        failures: a sentence for each that failed; what it has written up to then is whole.
    """

    def __init__(self, listeners: Iterable[Listener]) -> None:
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

    def _tell(self, what: Callable[[Listener], None]) -> None:
        for listener in self._listeners:
            try:
                what(listener)
            except Exception as error:  # as above
                self._leave_out(listener, error)

    def _leave_out(self, listener: Listener, error: Exception) -> None:
        self._listeners = [each for each in self._listeners if each is not listener]
        path = os.fspath(getattr(listener, "path", ""))
        if path and isinstance(error, OSError):
            failure = f"{path} is not written any more: {error.strerror}; up to here it is whole"
        else:
            name = path or type(listener).__name__
            failure = f"{name} is told nothing more, since it raised {error!r}"
        self.failures.append(failure)
        self.note(failure)

"""What is recorded, shown while it happens: a line for each frame, or all that is in it.

Decoding takes longer than passing on, and a terminal may stand still. So frames wait here, and
traffic waits for nothing: of what would take too much room it is said how much is not shown.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime

import trio

from .message_text import in_full, one_line, printable
from .reading import read
from .recording import RecordedConnection, RecordedEnd, RecordedFrame, RecordedNote

WAITING_FRAMES_MAX = 20_000
WAITING_BYTES_MAX = 64 << 20
LINES_AT_ONCE_MAX = 200
LAST_SECONDS_MAX = 2.0
"""What waits still when the recorder is stopped is shown for so long."""

Event = RecordedConnection | RecordedFrame | RecordedEnd | RecordedNote


class RecordingScreen:
    """Shows what is recorded: a `Listener`.

    Args:
        write: puts lines, each with its end, where they are seen; called in a thread.
        is_full: whether messages are shown in full.

    Attributes:
        unshown_count: frames, and other things, for which there was no room.
    """

    def __init__(self, write: Callable[[str], object], *, is_full: bool = False) -> None:
        self.unshown_count = 0
        self._write = write
        self._is_full = is_full
        self._lines: list[str] = []
        self._waiting: deque[Event] = deque()
        self._waiting_bytes = 0
        self._unshown_since = 0
        self._has_come = trio.Event()

    def opened(self, connection: RecordedConnection) -> None:
        """A connection was made."""
        self._put(connection)

    def passed(self, frame: RecordedFrame) -> None:
        """A frame has come whole."""
        size = len(frame.content)
        is_full = len(self._waiting) >= WAITING_FRAMES_MAX
        if is_full or self._waiting_bytes + size > WAITING_BYTES_MAX:
            self.unshown_count += 1
            self._unshown_since += 1
            return
        self._waiting_bytes += size
        self._put(frame)

    def ended(self, end: RecordedEnd) -> None:
        """A connection is over."""
        self._put(end)

    def noted(self, note: RecordedNote) -> None:
        """Something else happened."""
        self._put(note)

    async def run(self) -> None:
        """Show what comes until cancelled; then the last of it."""
        try:
            while True:
                await self._has_come.wait()
                while self._waiting and len(self._lines) < LINES_AT_ONCE_MAX:
                    self._lines.extend(self._next())
                    await trio.lowlevel.checkpoint()  # one frame, then those who pass them on
                if not self._waiting:
                    self._has_come = trio.Event()
                self._lines.extend(self._unshown())
                await trio.to_thread.run_sync(self._write, "".join(self._lines))
                self._lines.clear()
        finally:
            self._show_last()

    def _show_last(self) -> None:
        deadline = time.monotonic() + LAST_SECONDS_MAX
        self._write("".join(self._lines))
        while self._waiting and time.monotonic() < deadline:
            self._write("".join(self._next()))
        frames = sum(isinstance(event, RecordedFrame) for event in self._waiting)
        self.unshown_count += frames
        self._unshown_since += frames
        self._waiting.clear()
        self._write("".join(self._unshown()))

    def _put(self, event: Event) -> None:
        if len(self._waiting) < 2 * WAITING_FRAMES_MAX:
            self._waiting.append(event)
            self._has_come.set()
        else:
            self.unshown_count += 1
            self._unshown_since += 1

    def _next(self) -> Iterator[str]:
        event = self._waiting.popleft()
        if isinstance(event, RecordedFrame):
            self._waiting_bytes -= len(event.content)
        return lines_of(event, is_full=self._is_full)

    def _unshown(self) -> Iterator[str]:
        if self._unshown_since and not self._waiting:
            count, self._unshown_since = self._unshown_since, 0
            yield f"... {count:,} frames are not shown: there were more than can be shown live\n"


def lines_of(event: Event, *, is_full: bool = False) -> Iterator[str]:
    """An event as lines, each with its end.

    Args:
        event: what was recorded.
        is_full: whether its message is shown in full.
    """
    moment = time_text(event.time_ns)
    if isinstance(event, RecordedFrame):
        yield from _frame_lines(event, moment, is_full)
    elif isinstance(event, RecordedConnection):
        broker = printable(str(event.broker_name))
        yield f"{moment} {event.number} opened by {event.client} to broker {broker}\n"
    elif isinstance(event, RecordedEnd):
        reason = f": {printable(event.reason)}" if event.reason else ""
        side = "client" if event.is_by_client else "broker"
        ending = "ended" if reason else f"ended by the {side}"
        yield f"{moment} {event.number} {ending}{reason}\n"
    else:
        yield f"{moment} {printable(event.text)}\n"


def _frame_lines(frame: RecordedFrame, moment: str, is_full: bool) -> Iterator[str]:
    reading = read(frame)
    arrow = "->" if frame.kind.is_from_client else "<-"
    parts = [moment, str(frame.connection), arrow, reading.name]
    if reading.version >= 0:
        parts += [f"v{reading.version}", f"#{frame.correlation_id}"]
    if reading.client_id is not None:
        parts.append(f"({printable(reading.client_id)})")
    if frame.waited_ns:
        parts.append(f"{frame.waited_ns / 1e6:,.1f} ms")
    if reading.message is not None and not is_full:
        parts.append(one_line(reading.message, reading.version))
    if reading.problem:
        parts.append(f"({printable(reading.problem)})")
    yield " ".join(part for part in parts if part) + "\n"
    if reading.message is not None and is_full:
        for line in in_full(reading.message, reading.version):
            yield f"    {line}\n"


def time_text(time_ns: int) -> str:
    """The time of day, to the millisecond, in the time zone of this machine."""
    try:
        return datetime.fromtimestamp(time_ns / 1e9).strftime("%H:%M:%S.%f")[:-3]
    except (OverflowError, ValueError, OSError):
        return str(time_ns)

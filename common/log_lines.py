"""The lines of a process's log: one for each event, whatever is in its arguments, as text or JSON.

What others can bring about again and again is limited: a full disk, batches that are not valid and
connections that break the protocol meet every request alike, so a line for each would fill the disk
and hide everything else; none at all hides the cause. Lines of a class are written so many times a
minute, then counted, and the count is one line.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Hashable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from .escaping import shown

if TYPE_CHECKING:
    from types import TracebackType

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
TRACEBACK_INDENT = "    "
TRACEBACK_LINES_MAX = 200

LIMITED_FROM = logging.WARNING
"""Who has events below it written wants all of them."""
LIMITED_LOGGERS = "odradek"
"""The audit log, which is another's, is whole."""
INTERVAL_S = 60
"""From the first line of a class to the count of those that followed."""
LINES_MAX = 100
"""Of one statement of the program in that time; of a class that `one_class` names it is one."""

LEVELS: dict[str, int] = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
}
"""Kafka's LogLevelConfig, from the most silent on."""


BROKER_ID: ContextVar[int | None] = ContextVar("BROKER_ID", default=None)
"""Of the broker whose task logs: a process may hold several."""


def one_class(*of: Hashable) -> dict[str, object]:
    """`extra` of an event whose class is not the statement that logs it: an error of a directory.

    Args:
        of: what the class is known by; as bounded as what the log may hold of it.
    """
    return {"event_class": of}


class LogLineFormatter(logging.Formatter):
    """Formats events so that only events begin lines, and nothing in them steers a terminal.

    Messages are escaped whole, since names in them come from clients, and long ones lose their
    middle. A traceback keeps its lines, of which the same is true, indented: the text of its
    exception may hold line feeds.
    """

    def __init__(self) -> None:
        super().__init__(FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line of an event without its traceback."""
        record.message = shown(record.message)
        return super().formatMessage(record)

    def formatException(
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        """The traceback of an event, indented."""
        lines = super().formatException(ei).split("\n")
        return "\n".join(TRACEBACK_INDENT + shown(line) for line in lines)


class JsonLineFormatter(logging.Formatter):
    """Formats an event as one object of JSON on a line of its own, in ASCII.

    Its fields: `timestamp` (ISO 8601, UTC, milliseconds), `level`, `logger`, `message`,
    `broker_id` (null for what concerns the process), and `exception` with the traceback if there
    is one. Long messages lose their middle, as in text.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        at = datetime.fromtimestamp(record.created, UTC)
        event = {
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": shown(record.getMessage()),
            "broker_id": getattr(record, "broker_id", BROKER_ID.get()),
        }
        if record.exc_info and record.exc_info[0] is not None:
            lines = self.formatException(record.exc_info).split("\n")[-TRACEBACK_LINES_MAX:]
            event["exception"] = "\n".join(map(shown, lines))
        return json.dumps(event)


class _Interval:
    """What came of one class since its first line.

    Args:
        first: the event of that line.
    """

    __slots__ = ("_broker_id", "_first", "began_s", "suppressed", "written")

    def __init__(self, first: logging.LogRecord) -> None:
        self.began_s = first.created
        self.written = 0
        self.suppressed = 0
        self._first = first.levelno, first.levelname, first.name, first.getMessage()
        self._broker_id = BROKER_ID.get()

    def count(self) -> logging.LogRecord:
        """The event that says how many were suppressed."""
        level, level_name, name, message = self._first
        return logging.makeLogRecord(
            {
                "levelno": level,
                "levelname": level_name,
                "name": name,
                "msg": "%d more like this followed: %s",
                "args": (self.suppressed, message),
                "broker_id": self._broker_id,
            }
        )

    def has_ended(self, now_s: float) -> bool:
        """Whether it is over; a clock that was set back ends it, too."""
        return not 0 <= now_s - self.began_s < INTERVAL_S


class LimitedLogHandler(logging.StreamHandler[TextIO]):
    """Writes events to a stream, those of one class a bounded number of times a minute.

    The time is that of the events. Somebody calls `end_intervals` from time to time, so that what
    was counted last is written without another event of its class.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._intervals: dict[Hashable, _Interval] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Write an event, or count it."""
        if record.levelno < LIMITED_FROM or not record.name.startswith(LIMITED_LOGGERS):
            super().emit(record)
            return
        named = getattr(record, "event_class", None)
        of = named or (record.lineno, record.exc_info and record.exc_info[0])
        key = (BROKER_ID.get(), record.name, of)
        interval = self._intervals.get(key)
        if interval is not None and interval.has_ended(record.created):
            self._end(key, interval)
            interval = None
        if interval is None:
            interval = self._intervals[key] = _Interval(record)
        if interval.written < (LINES_MAX if named is None else 1):
            interval.written += 1
            super().emit(record)
        else:
            interval.suppressed += 1

    def end_intervals(self, now_s: float) -> None:
        """Write the counts of what is over.

        Args:
            now_s: seconds since the epoch.
        """
        self.acquire()
        try:
            for key, interval in list(self._intervals.items()):
                if interval.has_ended(now_s):
                    self._end(key, interval)
        finally:
            self.release()

    def close(self) -> None:
        """Write the counts of all: the process ends."""
        self.end_intervals(float("inf"))
        super().close()

    def _end(self, key: Hashable, interval: _Interval) -> None:
        del self._intervals[key]
        if interval.suppressed:
            super().emit(interval.count())


def log_to_stderr(level: int, log_format: str = "text") -> LimitedLogHandler:
    """Send the events of this process to standard error.

    Args:
        level: of `logging`, from which on they are written; loggers can be given others later.
        log_format: "text" or "json".

    Returns:
        The handler, whose intervals are to be ended from time to time.
    """
    handler = LimitedLogHandler(sys.stderr)
    handler.setFormatter(JsonLineFormatter() if log_format == "json" else LogLineFormatter())
    logging.basicConfig(handlers=[handler], level=level)
    return handler

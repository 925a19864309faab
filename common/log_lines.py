"""The lines of a process's log: one for each event, whatever is in its arguments."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from .escaping import shown

if TYPE_CHECKING:
    from types import TracebackType

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
TRACEBACK_INDENT = "    "


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


def log_to_stderr(level: int) -> None:
    """Send the events of this process to standard error, from a level of `logging` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLineFormatter())
    logging.basicConfig(handlers=[handler], level=level)

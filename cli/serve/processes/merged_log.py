"""One log of several brokers' lines, each with its broker's number."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

LOGGER = "odradek.cli.serve"
"""Of what a broker's process says that is no event of its log."""


class MergedLog:
    """Writes the lines of brokers' standard errors to one stream.

    In a log of text the number stands in front. In one of JSON it is the event's `broker_id`, of
    what concerns the broker's process, too; what is no event, such as the sentence that says why a
    broker cannot start, or a traceback of the interpreter's own, becomes one.

    Args:
        out: where to; flushed after each call.
        log_format: "text" or "json".
    """

    def __init__(self, out: TextIO, log_format: str) -> None:
        self._out = out
        self._numbered = _as_json if log_format == "json" else _as_text

    def write(self, broker_id: int, lines: list[str]) -> None:
        """Write lines of one broker.

        Args:
            broker_id: its number.
            lines: without their ends.
        """
        # Who reads the log may be gone; brokers go on, as a single one does.
        with suppress(OSError, ValueError):
            self._out.write("".join(f"{self._numbered(broker_id, line)}\n" for line in lines))
            self._out.flush()


def _as_text(broker_id: int, line: str) -> str:
    return f"broker {broker_id}: {line}"


def _as_json(broker_id: int, line: str) -> str:
    event = _event(line)
    if event is None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        event = {"timestamp": now, "level": "WARNING", "logger": LOGGER, "message": line}
    return json.dumps({**event, "broker_id": broker_id})


def _event(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None

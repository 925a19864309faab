"""How `odradek serve` shows that it is still loading: one line that grows, or a few lines."""

from __future__ import annotations

from typing import TextIO

LINES_APART_MAX = 32
"""Where lines stay, as in a log, they come after 1, 2, 4... seconds, and then this far apart."""


class LoadProgressLine:
    """Called every second while logs are loaded.

    Args:
        out: standard error; on a terminal the line is written over.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._calls = 0
        self._next = 1
        self._apart = 1
        self._width = 0

    def __call__(self, text: str) -> None:
        """Show how far the loading has come."""
        self._calls += 1
        if self._out.isatty():
            self._out.write("\r" + text.ljust(self._width))
            self._width = len(text)
        elif self._calls == self._next:
            self._next += self._apart
            self._apart = min(2 * self._apart, LINES_APART_MAX)
            self._out.write(f"odradek serve: {text}\n")
        self._out.flush()

    def end(self) -> None:
        """Leave the line as it is, and go on below it."""
        if self._width:
            self._out.write("\n")
            self._out.flush()
            self._width = 0

"""A program that takes lines by its standard input, and says in lines what happens."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

END_SECONDS_MAX = 120.0


class LineProcess:
    """The process; a context manager that ends it.

    Args:
        command: the program and its arguments.
        on_line: is given each whole line that it writes, by a thread.
        errors: a file for its standard error.
    """

    def __init__(
        self, command: Sequence[str], on_line: Callable[[str], None], errors: Path
    ) -> None:
        self._on_line = on_line
        with errors.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()

    def say(self, line: str) -> None:
        """Write it a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL: it ends without a word."""
        self._process.kill()
        self._process.wait()

    def wait_until_heard(self) -> None:
        """Wait until everything is heard that an ended process has said."""
        self._reader.join(END_SECONDS_MAX)

    def _read_lines(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):  # else it was killed as it wrote
                self._on_line(line.rstrip("\n"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        if kind is not None:
            self._process.kill()
        with contextlib.suppress(BrokenPipeError):  # it was killed
            self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS_MAX)
        finally:
            self._process.kill()
            self._process.wait()
            self.wait_until_heard()

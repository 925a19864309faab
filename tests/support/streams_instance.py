"""An instance of a word count by Kafka Streams, in a streams group, exactly once.

`tests/interop/java/.../StreamsInstance.java` runs it: it reads "lines", and writes the count of
each word so far to "counts".
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from .line_process import LineProcess

PROGRAM = "odradek.interop.StreamsInstance"
LINES, COUNTS = "lines", "counts"
SECONDS_MAX = 120.0


class StreamsInstance(LineProcess):
    """The Java process; a context manager that ends it.

    Args:
        java_command: what goes before the name of a class.
        bootstrap: the broker.
        application: its id, which is the group's.
        folder: where states are kept, and its standard error.
        name: of the instance; one that comes back finds its state by it.
    """

    def __init__(
        self, java_command: Sequence[str], bootstrap: str, application: str, folder: Path, name: str
    ) -> None:
        self._states: list[str] = []
        self._changed = threading.Condition()
        command = [*java_command, PROGRAM, bootstrap, application, str(folder / "states"), name]
        super().__init__(command, self._hear, folder / f"{name}.log")

    def wait_until_running(self) -> None:
        """Wait until it has tasks, or knows that there are none for it."""
        with self._changed:
            heard = self._changed.wait_for(lambda: "state RUNNING" in self._states, SECONDS_MAX)
        assert heard, self._states

    def _hear(self, line: str) -> None:
        with self._changed:
            self._states.append(line)
            self._changed.notify_all()

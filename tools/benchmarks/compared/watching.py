"""What a run shows while it goes on: lines that stay, and below them how far it is."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from .time_left import TimeLeft, in_words


class Shown:
    """Lines on a console, and a bar with the time left where it is a terminal.

    A context manager. In a file the time left stands at the end of each line instead.

    Args:
        console: where to.
        time_left: hears of each slot, and estimates.
    """

    def __init__(self, console: Console, time_left: TimeLeft) -> None:
        self._console = console
        self._time_left = time_left
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task(
            "", total=time_left.planned, left=in_words(time_left.seconds())
        )

    def say(self, line: str) -> None:
        """A line to be kept."""
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def at(self, what: str) -> None:
        """What is being done now."""
        self._progress.update(self._bar, description=what)

    def took(self, load: str, peer: str, seconds: float) -> None:
        """A slot was done, with all its tries."""
        self._time_left.took(load, peer, seconds)
        self._draw()

    def no_more(self, load: str, peer: str) -> None:
        """This will not be done again."""
        self._time_left.no_more(load, peer)
        self._draw()

    def _draw(self) -> None:
        left = in_words(self._time_left.seconds())
        done = self._time_left.planned - self._time_left.slots
        self._progress.update(self._bar, completed=done, left=left)
        if not self._console.is_terminal:
            self.say(f"  {done} of {self._time_left.planned} slots, {left}")

    def __enter__(self) -> Shown:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

"""What `odradek log verify` and `repair` share: their folders, locks, progress and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

from ..common.show import note
from ..declarations import Argument, Exit

CLEAN = 0
DAMAGED = 1
UNREADABLE = 2

Folders = Annotated[
    list[Path],
    Argument(
        metavar="DIR",
        help="A data folder (what a broker has as log.dirs), or a partition's folder in one.",
        show_default=False,
    ),
]


def leave_unreadable(sentence: str) -> NoReturn:
    """Say why nothing can be done, and end with the exit code for that."""
    note(f"odradek: error: {sentence}")
    raise Exit(UNREADABLE)


def existing(folders: Sequence[Path]) -> list[str]:
    """The folders as storage has them; one that is not there, or no broker's, ends the command."""
    from ...log_tools.verify.data_folder import is_log_folder
    from ...storage.io.read_only_files import READ_ONLY_FILES

    for folder in folders:
        if not folder.is_dir():
            leave_unreadable(f"{folder} is no folder; give what a broker has as log.dirs")
        if not is_log_folder(READ_ONLY_FILES, str(folder)):
            leave_unreadable(
                f"{folder} is no data folder: it has neither meta.properties, nor logs in folders"
                " such as orders-0; give what a broker has as log.dirs"
            )
    return [str(folder) for folder in folders]


def hold_locks(paths: Sequence[str], stack: ExitStack, *, exclusive: bool, advice: str) -> None:
    """Keep brokers out until `stack` ends; a broker that is in ends the command."""
    from ...log_tools.verify.data_folder import hold_locks as hold
    from ...storage.errors import LogDirectoryError

    try:
        hold(paths, stack, exclusive=exclusive)
    except LogDirectoryError as error:
        leave_unreadable(f"{error}; {advice}")


@contextmanager
def reports_unreadable() -> Iterator[None]:
    """What the operating system refuses ends the command with a sentence and its exit code."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        leave_unreadable(f"{where}{error.strerror or error}")


@contextmanager
def progress(
    total_bytes: int, verb: str
) -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    """A bar over the bytes of the logs, where somebody is looking.

    Yields what is called with the bytes read, and what shows a line of the result.
    """
    if not sys.stderr.isatty():
        yield (lambda size: None), print
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    on_terminal = sys.stdout.isatty()
    columns = (TextColumn(verb), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    console = Console(stderr=not on_terminal)

    def show(line: str) -> None:
        if on_terminal:  # the bar makes room
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print(line)

    bar = Progress(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=False,  # or rich would take it for itself, also where a pipe reads it
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task(verb, total=total_bytes)
        yield (lambda size: bar.advance(task, size)), show


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"

"""Running a command line, and the one place that errors end in."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from ..common.escaping import escaped
from .common.errors import explain
from .declarations import Exit
from .plain_arguments import plain_call
from .version import version_line

NOT_UNDERSTOOD = 2

INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line; the exit code. Errors become one line on standard error."""
    _mend_standard_streams()
    try:
        result = _call(arguments)
        sys.stdout.flush()
    except BaseException as error:
        return _end(_cause(error))
    return result if isinstance(result, int) else 0


def _mend_standard_streams() -> None:
    """Have all three, though some were closed; what an encoding does not have is escaped."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _cause(error: BaseException) -> BaseException:
    """Of what several tasks raised, what ended the command; else the error itself."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [_cause(each) for each in error.exceptions]
    interrupts = [each for each in causes if isinstance(each, KeyboardInterrupt)]
    return interrupts[0] if interrupts else causes[0]


def _end(error: BaseException) -> int:
    if isinstance(error, Exit):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # The reader of our output has gone (as `head` does): nothing more to say, and nothing
        # that Python's last flush could write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, Exception):
        return _show_error(error)
    raise error


def _call(arguments: Sequence[str]) -> object:
    plain = plain_call(arguments)
    if plain is not None:
        return plain.function(**plain.arguments)
    from .help import HELP_WORDS, help_for, terminal_columns

    text = help_for(arguments, terminal_columns())
    if text is not None:
        print(text)
        return 0 if HELP_WORDS.intersection(arguments) else NOT_UNDERSTOOD
    if list(arguments) == ["--version"]:
        print(version_line())
        return 0
    from .app import app

    return app(args=list(arguments), prog_name="odradek", standalone_mode=False)


def _show_error(error: Exception) -> int:
    show_usage = getattr(error, "show", None)
    if show_usage is not None:  # typer's own: the command line was not understood
        from typer import BadParameter

        if isinstance(error, BadParameter):  # Pydantic says the kind of its error first
            error.message = error.message.removeprefix("Value error, ")
        show_usage()
        return int(getattr(error, "exit_code", 2))
    sentence = explain(error)
    if sentence is None:
        raise error
    print(f"odradek: error: {escaped(sentence)}", file=sys.stderr)
    return 1

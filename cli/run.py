"""Running a command line, and the one place that errors end in."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from ..common.escaping import escaped
from .common.errors import explain
from .plain_arguments import plain_call

INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line; the exit code. Errors become one line on standard error."""
    try:
        result = _call(arguments)
    except typer.Exit as leaving:
        return leaving.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (as `head` does): nothing more to say, and nothing
        # that Python's last flush could write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _show_error(error)
    return result if isinstance(result, int) else 0


def _call(arguments: Sequence[str]) -> object:
    plain = plain_call(arguments)
    if plain is not None:
        return plain.function(**plain.arguments)
    from .app import app

    return app(args=list(arguments), prog_name="odradek", standalone_mode=False)


def _show_error(error: Exception) -> int:
    show_usage = getattr(error, "show", None)
    if show_usage is not None:  # typer's own: the command line was not understood
        show_usage()
        return int(getattr(error, "exit_code", 2))
    sentence = explain(error)
    if sentence is None:
        raise error
    print(f"odradek: error: {escaped(sentence)}", file=sys.stderr)
    return 1

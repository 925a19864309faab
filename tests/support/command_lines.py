"""Command lines of `odradek`, read by the parsers of the real one without being run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer

from odradek.cli.app import app
from odradek.cli.serve import command as serve
from odradek.cli.serve.options import Options
from odradek.cli.serve.parser import make_parser
from odradek.config.broker_config import BrokerConfig

SEPARATORS = frozenset({"|", "&&", ";", "&", ">"})


def simple_commands(line: str) -> list[list[str]]:
    """The commands that a line of the shell starts, as words."""
    found: list[list[str]] = [[]]
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    for word in words:
        if word in SEPARATORS:
            found.append([])
        else:
            found[-1].append(word)
    return found


def read_arguments(words: Sequence[str]) -> None:
    """Have what follows `odradek` read as the program does.

    Raises:
        click.ClickException: an argument that there is not, or a wrong value.
        SystemExit: the same, of `odradek serve`, which has a parser of its own.
    """
    if words[0] == "serve":
        options = make_parser().parse_args(words[1:], Options())
        BrokerConfig.from_sources({}, serve._overrides(options))
        return
    found, rest = _program(), list(words)
    context = found.make_context("odradek", rest)
    while hasattr(found, "resolve_command"):
        name, found, rest = found.resolve_command(context, context._protected_args + context.args)
        context = found.make_context(name, rest, parent=context)
    assert not context.args, f"{context.args} of {shlex.join(words)}"


@cache
def _program() -> Any:
    return typer.main.get_command(app)

"""The typer application: the commands, put together, for command lines that are not plain.

Each command imports what it needs when it runs. Helps are not typer's: see `help`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Annotated, Any

import typer

from .commands import COMMANDS, load_command
from .declarations import CommandGroup, Option, parameters_of
from .version import version_line

app = typer.Typer(
    name="odradek",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def typed(function: Callable[..., object]) -> Callable[..., object]:
    """A command's function with its options and arguments declared to typer.

    Args:
        function: declares them by `declarations`.
    """

    @wraps(function)
    def call(**arguments: Any) -> object:
        return function(**arguments)

    annotations: dict[str, Any] = {}
    for name, type_, declared in parameters_of(function):
        kind: Any = typer.Option if isinstance(declared, Option) else typer.Argument
        info = kind(
            *declared.names,
            help=declared.help,
            metavar=declared.metavar,
            min=declared.min,
            max=declared.max,
            envvar=declared.envvar,
            show_default=declared.show_default,
        )
        annotations[name] = Annotated[type_, info]
    parameters = [
        each.replace(annotation=annotations[each.name])
        for each in signature(function).parameters.values()
    ]
    declared_to_typer: Any = call
    declared_to_typer.__annotations__ = annotations
    declared_to_typer.__signature__ = signature(function).replace(parameters=parameters)
    return call


def _version(requested: bool) -> None:
    if requested:
        print(version_line())
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of `odradek` itself."""


@app.command(
    name="serve",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
def serve(arguments: Annotated[list[str] | None, typer.Argument(metavar="...")] = None) -> None:
    """Stands here for the list of commands; `main` dispatches `serve` before typer is loaded."""
    from .serve.command import main

    raise typer.Exit(main(list(arguments or [])))


for _name in COMMANDS:
    _command = load_command(_name)
    if isinstance(_command, CommandGroup):
        _group = typer.Typer(help=_command.help)
        for _of_group, _function in _command.commands.items():
            _group.command(name=_of_group)(typed(_function))
        app.add_typer(_group, name=_name)
    else:
        app.command(name=_name)(typed(_command))

"""The typer application: the commands, put together, for command lines that are not plain.

Each command imports what it needs when it runs. Helps are not typer's: see `help`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .commands import COMMANDS, load_command

app = typer.Typer(
    name="odradek",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"odradek {version('odradek')}")
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
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        app.command(name=_name)(_command)

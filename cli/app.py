"""The typer application: the commands, put together, for help and for what is not plain.

Each command imports what it needs when it runs.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .commands import COMMANDS, load_command

HELP = """\
A Kafka broker in Python, and the tools to look into one.

**Start a broker** and leave it running:

```
odradek serve
```

**In another terminal**, or against any Kafka:

```
odradek topics create events --partitions 3
echo "hello" | odradek produce events
odradek consume events --from-beginning --until-end
```

Brokers are looked for at 127.0.0.1:9092; give another address with --bootstrap-server, or in
the variable ODRADEK_BOOTSTRAP_SERVER. Every command has a --help with examples.
"""

app = typer.Typer(
    name="odradek",
    help=HELP,
    rich_markup_mode="markdown",
    no_args_is_help=True,
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
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Tell the version.")
    ] = False,
) -> None:
    """Options of `odradek` itself; typer shows HELP in place of this."""


@app.command(
    name="serve",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    help="Run a broker until Ctrl-C. See: odradek serve --help",
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

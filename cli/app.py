"""The typer application: the commands, put together, and the one place errors end in.

Each command imports what it needs when it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from .bench.command import bench
from .cluster.command import cluster
from .common.errors import explain
from .groups.command import app as groups
from .log.command import app as log
from .recorder.record import record
from .recorder.replay import replay
from .records.consume import consume
from .records.produce import produce
from .spark.command import app as spark
from .spark.demo import demo
from .topics.command import app as topics
from .transactions.command import app as transactions

INTERRUPTED = 130
"""What a shell expects of a program that Ctrl-C ended."""

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


app.add_typer(topics, name="topics")
app.command(name="produce")(produce)
app.command(name="consume")(consume)
app.add_typer(groups, name="groups")
app.add_typer(transactions, name="transactions")
app.command(name="cluster")(cluster)
app.command(name="record")(record)
app.command(name="replay")(replay)
app.add_typer(log, name="log")
app.add_typer(spark, name="spark")
app.command(name="bench")(bench)
app.command(name="demo")(demo)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; the exit code. Errors become one line on standard error."""
    try:
        result = app(args=list(arguments), prog_name="odradek", standalone_mode=False)
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


def _show_error(error: Exception) -> int:
    show_usage = getattr(error, "show", None)
    if show_usage is not None:  # typer's own: the command line was not understood
        show_usage()
        return int(getattr(error, "exit_code", 2))
    sentence = explain(error)
    if sentence is None:
        raise error
    print(f"odradek: error: {sentence}", file=sys.stderr)
    return 1

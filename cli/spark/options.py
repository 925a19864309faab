"""What the commands of `odradek spark` have in common: their options, a session, a progress bar."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..common.errors import fail

if TYPE_CHECKING:
    from ...spark_connector.pipelines import PipelineProgress, TopicSource

LINE_EVERY_S = 10.0
"""Where nobody watches a bar, a line tells how far it is."""

Topics = Annotated[
    list[str] | None, typer.Argument(metavar="TOPIC...", show_default=False, help="Topics by name.")
]
Pattern = Annotated[
    str | None,
    typer.Option("--pattern", metavar="REGEX", help="All topics whose whole name matches."),
]
Master = Annotated[
    str, typer.Option("--master", help="Spark's master; local[*] uses every core here.")
]
KafkaOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka",
        metavar="NAME=VALUE",
        help="A setting of Kafka's clients, such as security.protocol=SSL; repeatable.",
    ),
]
TargetServer = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        envvar="ODRADEK_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="A broker of the cluster that is written to.",
    ),
]
Prefix = Annotated[str, typer.Option("--prefix", help="In front of the names of written topics.")]
Job = Annotated[
    str,
    typer.Option("--job", metavar="NAME", help="Its position is kept in the cluster by this name."),
]
PerTransaction = Annotated[
    int, typer.Option("--per-transaction", min=1, help="Records in a transaction at most.")
]
Every = Annotated[
    str | None,
    typer.Option(
        "--every", metavar="INTERVAL", help="Go on until Ctrl-C, a batch every '10 seconds'."
    ),
]
SourceFormat = Annotated[
    str,
    typer.Option("--source", help="kafka: Spark's own source; odradek: the one without a jar."),
]

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}


def settings_of(pairs: list[str] | None) -> dict[str, str]:
    """`NAME=VALUE` options as settings; CommandError for what is none."""
    settings = {}
    for pair in pairs or ():
        name, sign, value = pair.partition("=")
        if not (name and sign):
            fail(f"{pair!r} is no setting; write NAME=VALUE, as in security.protocol=SSL")
        settings[name] = value
    return settings


def source_of(
    bootstrap_server: str,
    topics: list[str] | None,
    pattern: str | None,
    kafka: list[str] | None,
    source_format: str,
) -> TopicSource:
    """The topics that a command line names."""
    from ...spark_connector.pipelines import TopicSource
    from ..common.connection import check_addresses

    check_addresses(bootstrap_server)
    return TopicSource(
        bootstrap_server, tuple(topics or ()), pattern, settings_of(kafka), source_format
    )


def needs_connector(source_format: str) -> bool:
    """Whether a source is Spark's own; topics are written by none of Spark's."""
    return source_format != "odradek"


@contextmanager
def session(master: str, *, iceberg: bool = False, connector: bool = True) -> Iterator[Any]:
    """A Spark session, stopped on leaving; what the JVM says goes to a file.

    Args:
        master: Spark's.
        iceberg: whether tables of Iceberg are used.
        connector: whether Spark's own Kafka source is, which has to be fetched once.
    """
    from ...spark_connector import spark_session
    from ...spark_connector.connector_jars import connector_packages
    from ...spark_connector.installation import find_installation

    packages: list[str] | None = None if connector else []
    if iceberg:
        from ...spark_connector.pipelines.iceberg import iceberg_packages

        installation = find_installation()
        packages = iceberg_packages(installation)
        if connector:
            packages = [*connector_packages(installation), *packages]
    conf = dict(SETTINGS)
    if master.startswith("local"):
        conf["spark.driver.host"] = "127.0.0.1"
    # A file for each run; that of one which ends well says nothing that anybody looks for.
    descriptor, name = tempfile.mkstemp(prefix="odradek-spark-", suffix=".log")
    os.close(descriptor)
    log_file = Path(name)
    spark = spark_session(
        "odradek spark", master=master, packages=packages, conf=conf, log_file=log_file
    )
    try:
        yield spark
    finally:
        spark.stop()
    log_file.unlink(missing_ok=True)


@contextmanager
def shown_progress() -> Iterator[Callable[[PipelineProgress], None]]:
    """Shows what a pipeline tells: a bar on a terminal, else a line now and then."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=None, text="")

        def show(progress: PipelineProgress) -> None:
            total = None if progress.lag is None else progress.rows + progress.lag
            bar.update(
                task,
                description=progress.step,
                completed=progress.rows,
                total=total,
                text=progress_text(progress),
            )

        yield show


class _Lines:
    """For a log: a line at each new step, and every `LINE_EVERY_S` in between."""

    def __init__(self) -> None:
        self._step = ""
        self._shown_at = 0.0

    def __call__(self, progress: PipelineProgress) -> None:
        now = time.monotonic()
        if progress.step != self._step or now - self._shown_at >= LINE_EVERY_S:
            self._step, self._shown_at = progress.step, now
            print(f"{progress.step}: {progress_text(progress)}", file=sys.stderr, flush=True)


def progress_text(progress: PipelineProgress) -> str:
    """Rows, rate, what is left and for how long."""
    text = f"{progress.rows:,} records, {progress.rate:,.0f}/s"
    if progress.lag is not None:
        text += f", {progress.lag:,} to go"
    if progress.seconds_left:
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        text += f", {minutes} min {seconds} s left" if minutes else f", {seconds} s left"
    return text

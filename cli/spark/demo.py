"""`odradek demo`: real flights through a broker and Spark, checked and drawn."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..common.connection import check_connection
from ..common.errors import fail
from ..common.show import note, show_table
from ..declarations import Option

if TYPE_CHECKING:
    from ...spark_connector.demo.demo import DemoResult

DIFFERENCES_SHOWN = 20
STANDARD_ERROR = 2


def demo(
    rows: Annotated[
        int | None,
        Option("--rows", min=1, help="Only the first flights of the year, for a quick look."),
    ] = None,
    output: Annotated[
        Path, Option("--output", "-O", help="Folder for the Parquet files and the picture.")
    ] = Path("demo-output"),
    bootstrap_server: Annotated[
        str | None,
        Option(
            "--bootstrap-server",
            "-b",
            metavar="HOST:PORT",
            help="Use this broker; by default the demo starts an odradek of its own.",
        ),
    ] = None,
    prefix: Annotated[str, Option("--prefix", help="Starts the names of the demo's topics.")] = "",
    master: Annotated[
        str, Option("--master", help="Spark's master; local[*] uses every core.")
    ] = "local[*]",
) -> None:
    """Run 336,776 real flights through a broker and Spark, and check every row.

    The flights that left New York in 2013 are produced to a topic, keyed by airline, and some of
    them again with damaged values. They are archived to an Iceberg table; what is damaged goes
    from there to a topic of dead letters, and all to another topic. Spark's Structured Streaming
    reads that through its own Kafka source, joins the airlines' names, adds up delays by airline
    and hour, and writes the table to Parquet and to a topic. An audit looks for records that were
    lost, doubled or moved on the way. Then pandas computes the same table straight from the data,
    and both are compared row by row: any difference ends the demo with exit code 1.

    It takes about a minute and needs Java 17 and pip install 'odradek[demo]'.

    ```
    odradek demo
    odradek demo --rows 5000
    odradek demo --bootstrap-server 127.0.0.1:9092 --prefix try-1-
    ```
    """
    from ...spark_connector.demo.demo import DemoSettings, run_demo

    started = time.monotonic()
    with _broker(bootstrap_server, output) as address:
        settings = DemoSettings(address, output, rows, prefix, master)
        with _shown_progress() as progress:
            result = run_demo(settings, progress)
    _show_result(result)
    note(f"the demo took {time.monotonic() - started:.0f} s")
    if not result.is_right:
        fail("what came through the broker is not what went in, or not what pandas computes")


@contextmanager
def _broker(bootstrap_server: str | None, output: Path) -> Iterator[str]:
    """The address of a broker: the given one, or a new one that lives as long as this."""
    if bootstrap_server is not None:
        check_connection(bootstrap_server)
        yield bootstrap_server
        return
    from ...testing.process.broker_process import BrokerProcess, BrokerStartError

    output.mkdir(parents=True, exist_ok=True)
    try:
        broker = BrokerProcess(log_path=output / "broker.log")
    except BrokerStartError as error:
        what = str(error).splitlines()[0]
        fail(f"the demo could not start its broker: {what}; its log is {output / 'broker.log'}")
    with broker:
        note(f"odradek is ready at {broker.bootstrap}")
        yield broker.bootstrap


@contextmanager
def _shown_progress() -> Iterator[Any]:
    """Bars on standard error, and a line for each finished step.

    They go there by a descriptor of their own: while Spark starts, what is written to that of
    standard error goes to Spark's log.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with os.fdopen(os.dup(STANDARD_ERROR), "w", encoding=sys.stderr.encoding) as shown:
        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[counted]}"),
            TimeElapsedColumn(),
            console=Console(file=shown),
            transient=True,
        )
        with bar:
            yield _Steps(bar)


class _Steps:
    """A bar for each step that runs; `DemoProgress` over rich."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def start(self, step: str, total: int | None) -> _Step:
        return _Step(self._bar, step, total)


class _Step:
    def __init__(self, bar: Any, step: str, total: int | None) -> None:
        self._bar = bar
        self._step = step
        self._total = total
        self._started = time.monotonic()
        self._task = bar.add_task(step, total=total, counted="")

    def advance(self, done: int) -> None:
        self._bar.update(self._task, completed=done, counted=f"{done:,} of {self._total:,}")

    def finish(self, summary: str) -> None:
        seconds = time.monotonic() - self._started
        self._bar.remove_task(self._task)
        line = f"{seconds:6.1f} s  {self._step}: {summary}"
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)


def _show_result(result: DemoResult) -> None:
    show_table(
        ["airline", "flights", "cancelled %", "departs late by", "arrives late by"],
        [
            [
                a.airline,
                a.flights,
                a.cancelled_percent,
                a.mean_departure_delay,
                a.mean_arrival_delay,
            ]
            for a in result.airlines
        ],
        title="New York 2013, mean delays in minutes",
    )
    sys.stdout.flush()
    for fault in result.audit.faults:
        note(f"{fault.kind}: {fault.sentence}")
        for sample in fault.samples:
            note(f"  {sample}")
    for expectation in result.audit.results:
        if expectation.has_failed:
            note(f"{expectation.expectation}: {expectation.topic}: {expectation.sentence}")
    for place, comparison in (
        ("Parquet", result.parquet),
        ("the topic", result.topic),
        ("the dead letters", result.dead_letters),
    ):
        counts = ", ".join(
            f"{len(lines)} {kind}"
            for kind, lines in (
                ("missing", comparison.missing),
                ("unexpected", comparison.unexpected),
                ("doubled", comparison.doubled),
                ("different", comparison.different),
            )
        )
        verdict = "every row is right" if comparison.is_equal else "NOT RIGHT"
        note(f"check of {comparison.rows:,} rows in {place}: {verdict} ({counts})")
        for line in comparison.differences[:DIFFERENCES_SHOWN]:
            note(f"  {line}")
    note(f"picture: {result.plot}")

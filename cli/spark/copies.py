"""`odradek spark archive`, `replay` and `mirror`: topics to a lake, back, and elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer
from ..common.errors import fail
from ..common.show import note
from .options import (
    Every,
    Job,
    KafkaOptions,
    Master,
    Pattern,
    PerTransaction,
    Prefix,
    SourceFormat,
    TargetServer,
    Topics,
    needs_connector,
    session,
    settings_of,
    shown_progress,
    source_of,
)

if TYPE_CHECKING:
    from ...spark_connector.pipelines import CopyResult, TopicTarget, ValueSettings

Folder = Annotated[str, typer.Argument(metavar="FOLDER", show_default=False, help="Of the lake.")]
TableFormat = Annotated[
    str, typer.Option("--format", help="parquet, or iceberg: a table in a Hadoop catalog.")
]


def archive(
    folder: Folder,
    topics: Topics = None,
    pattern: Pattern = None,
    table_format: TableFormat = "parquet",
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where Spark notes its offsets; by default in FOLDER."),
    ] = None,
    every: Every = None,
    per_batch: Annotated[
        int, typer.Option("--per-batch", min=1, help="Offsets in a batch at most.")
    ] = 4_000_000,
    fail_on_data_loss: Annotated[
        bool,
        typer.Option(help="Whether it is an error if records were deleted before they were read."),
    ] = True,
    gather_days: Annotated[
        bool,
        typer.Option("--gather-days", help="One file for each day of a batch; for many days."),
    ] = False,
    registry: Annotated[
        str | None,
        typer.Option(
            "--registry",
            metavar="URL",
            help="Values become columns, too: this schema registry knows what wrote them.",
        ),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option("--subject", help="Whose latest schema they are read as; else TOPIC-value."),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", help="A file's instead: .avsc, .proto or .json. Needs no registry."
        ),
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka: KafkaOptions = None,
    source: SourceFormat = "kafka",
    master: Master = "local[*]",
) -> None:
    """Append to a lake what topics hold and it does not, each record once.

    Keys, values, headers, offsets, timestamps and their types are kept, by topic and day. It may
    be killed at any point; the next run of the same folder goes on exactly there.

    ```
    odradek spark archive lake/ orders payments
    odradek spark archive lake/ --pattern '.*' --every '1 minute'
    odradek spark archive warehouse/ orders --format iceberg
    odradek spark archive lake/ orders --registry http://localhost:8081
    ```
    """
    from ...spark_connector.pipelines import ArchiveSettings, archive_topics

    settings = ArchiveSettings(
        source_of(bootstrap_server, topics, pattern, kafka, source),
        folder,
        table_format,
        checkpoint,
        every,
        per_batch,
        fail_on_data_loss,
        gather_days,
        _values(topics, registry, subject, schema),
    )
    is_iceberg, connector = table_format == "iceberg", needs_connector(source)
    with (
        session(master, iceberg=is_iceberg, connector=connector) as spark,
        shown_progress() as show,
    ):
        result = archive_topics(spark, settings, show)
    if result.removed_files:
        note(f"removed {result.removed_files} files of a batch that was interrupted")
    note(f"archived {_rate(result.rows, result.seconds)} in {result.batches} batches to {folder}")


def replay(
    folder: Folder,
    topics: Topics = None,
    table_format: TableFormat = "parquet",
    bootstrap_server: TargetServer = DEFAULT_BOOTSTRAP_SERVER,
    prefix: Prefix = "",
    dead_letters: Annotated[
        bool,
        typer.Option(
            "--dead-letters",
            help="Only values that did not decode when they were archived, with the reason.",
        ),
    ] = False,
    job: Job = "replay",
    per_transaction: PerTransaction = 20_000,
    replication_factor: Annotated[
        int, typer.Option(help="Of topics that are made; -1 is the broker's own.")
    ] = -1,
    kafka: KafkaOptions = None,
    master: Master = "local[*]",
) -> None:
    """Write an archive back to topics: same partitions, order, timestamps and headers.

    It writes in transactions that carry its position, so a run that was killed neither loses nor
    doubles a record: the next one of the same --job goes on. Read the topics with read_committed.

    ```
    odradek spark replay lake/ --prefix again-
    odradek spark replay lake/ orders --job try-2 --bootstrap-server other:9092
    odradek spark replay lake/ --dead-letters --prefix dead- --job dead
    ```
    """
    from ...spark_connector.pipelines import ReplaySettings, replay_archive

    if dead_letters and not prefix:
        fail("dead letters need topics of their own: give --prefix, such as dead-")
    settings = ReplaySettings(
        folder,
        _target(bootstrap_server, kafka, prefix, replication_factor),
        job,
        tuple(topics or ()),
        table_format,
        per_transaction,
        dead_letters,
    )
    is_iceberg = table_format == "iceberg"
    with (
        session(master, iceberg=is_iceberg, connector=False) as spark,
        shown_progress() as show,
    ):
        _show(replay_archive(spark, settings, show), "replayed")


def mirror(
    topics: Topics = None,
    pattern: Pattern = None,
    from_server: Annotated[
        str,
        typer.Option("--from", metavar="HOST:PORT", help="A broker of the cluster that is read."),
    ] = "",
    bootstrap_server: TargetServer = DEFAULT_BOOTSTRAP_SERVER,
    prefix: Prefix = "",
    job: Job = "mirror",
    every: Every = None,
    per_transaction: PerTransaction = 20_000,
    replication_factor: Annotated[
        int, typer.Option(help="Of topics that are made; -1 is the broker's own.")
    ] = -1,
    from_kafka: Annotated[
        list[str] | None,
        typer.Option(
            "--from-kafka", metavar="NAME=VALUE", help="As --kafka, for the cluster that is read."
        ),
    ] = None,
    kafka: KafkaOptions = None,
    source: SourceFormat = "kafka",
    master: Master = "local[*]",
) -> None:
    """Copy topics of one cluster to another, each record once, and go on where it stopped.

    ```
    odradek spark mirror orders --from old:9092 --bootstrap-server new:9092
    odradek spark mirror --pattern '.*' --from old:9092 -b new:9092 --every '5 seconds'
    ```
    """
    from ...spark_connector.pipelines import MirrorSettings, mirror_topics

    if not from_server:
        fail("give the cluster that is read with --from HOST:PORT")
    settings = MirrorSettings(
        source_of(from_server, topics, pattern, from_kafka, source),
        _target(bootstrap_server, kafka, prefix, replication_factor),
        job,
        every,
        records_per_transaction=per_transaction,
    )
    connector = needs_connector(source)
    with session(master, connector=connector) as spark, shown_progress() as show:
        _show(mirror_topics(spark, settings, show), "mirrored")


def _values(
    topics: list[str] | None, registry: str | None, subject: str | None, schema: Path | None
) -> ValueSettings | None:
    """How values are decoded, by the options of `archive`; None: not at all."""
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


def _target(
    bootstrap_server: str, kafka: list[str] | None, prefix: str, replication_factor: int
) -> TopicTarget:
    from ...spark_connector.pipelines.topic_target import TopicTarget
    from ..common.connection import check_addresses

    check_addresses(bootstrap_server)
    return TopicTarget(
        bootstrap_server,
        settings_of(kafka),
        prefix,
        replication_factor=replication_factor,
    )


def _show(result: CopyResult, verb: str) -> None:
    text = f"{verb} {_rate(result.rows, result.seconds)}"
    if result.skipped:
        text += f"; {result.skipped:,} were there already"
    note(text)


def _rate(rows: int, seconds: float) -> str:
    return f"{rows:,} records in {seconds:.1f} s ({rows / max(seconds, 1e-3):,.0f} a second)"

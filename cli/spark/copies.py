"""`odradek spark archive`, `replay` and `mirror`: topics to a lake, back, and elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer
from ..common.errors import fail
from ..common.show import note
from ..declarations import Argument, Option
from .options import (
    CatalogProperties,
    Every,
    Job,
    KafkaOptions,
    LineagePlace,
    Master,
    Packages,
    Pattern,
    PerTransaction,
    Prefix,
    PyFiles,
    RegistryUrl,
    SchemaFile,
    SourceFormat,
    SparkConf,
    Subject,
    Submission,
    TableName,
    TargetServer,
    Topics,
    conf_of,
    lineage_of,
    needs_connector,
    packages_of,
    session,
    settings_of,
    shown_progress,
    source_of,
    values_of,
)

if TYPE_CHECKING:
    from ...spark_connector.pipelines import CopyResult, TopicTarget

Folder = Annotated[
    str,
    Argument(metavar="FOLDER", show_default=False, help="Of the lake; for a table, its warehouse."),
]
TableFormat = Annotated[
    str,
    Option("--format", help="parquet; iceberg, a table of a catalog; delta, a table."),
]


def archive(
    folder: Folder,
    topics: Topics = None,
    pattern: Pattern = None,
    table_format: TableFormat = "parquet",
    table: TableName = "topics.records",
    catalog: CatalogProperties = None,
    partition_by: Annotated[
        list[str] | None,
        Option(
            "--partition-by",
            metavar="TERM",
            help="Of a new table: a column; of Iceberg also days(timestamp), bucket(16, key), ...;"
            " repeatable. By default topic and date.",
        ),
    ] = None,
    deduplicate_by: Annotated[
        str | None,
        Option(
            metavar="PART",
            help="Of a topic's records with the same header:NAME, field:NAME or key a table gets"
            " the first only.",
        ),
    ] = None,
    deduplicate_within: Annotated[
        str, Option(metavar="INTERVAL", help="So far apart, by their timestamps.")
    ] = "1 day",
    checkpoint: Annotated[
        str | None,
        Option(
            metavar="FOLDER",
            help="Where Spark notes the offsets of Parquet; by default in FOLDER. A table has its"
            " own with its records.",
        ),
    ] = None,
    every: Every = None,
    per_batch: Annotated[
        int, Option("--per-batch", min=1, help="Offsets in a batch at most.")
    ] = 4_000_000,
    fail_on_data_loss: Annotated[
        bool,
        Option(help="Whether it is an error if records were deleted before they were read."),
    ] = True,
    gather_days: Annotated[
        bool,
        Option("--gather-days", help="One file for each day of a batch; for many days."),
    ] = False,
    registry: RegistryUrl = None,
    subject: Subject = None,
    schema: SchemaFile = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka: KafkaOptions = None,
    source: SourceFormat = "kafka",
    packages: Packages = None,
    lineage: LineagePlace = None,
    master: Master = "local[*]",
    py_files: PyFiles = None,
    spark_conf: SparkConf = None,
) -> None:
    """Append to a lake what topics hold and it does not, each record once.

    Keys, values, headers, offsets, timestamps and their types are kept, by topic and day. It may
    be killed at any point; the next run of the same folder goes on exactly there.

    ```
    odradek spark archive lake/ orders payments
    odradek spark archive lake/ --pattern '.*' --every '1 minute'
    odradek spark archive warehouse/ orders --format iceberg --partition-by 'days(timestamp)'
    odradek spark archive warehouse/ orders --format iceberg --catalog type=rest \\
        --catalog uri=http://localhost:8181 --table shop.orders
    odradek spark archive lake/orders orders --format delta
    odradek spark archive lake/ orders --registry http://localhost:8081
    ```
    """
    from ...spark_connector.pipelines import ArchiveSettings, archive_topics
    from ...spark_connector.pipelines.lineage import archive_job

    settings = ArchiveSettings(
        source_of(bootstrap_server, topics, pattern, kafka, source),
        folder,
        table_format,
        checkpoint,
        every,
        per_batch,
        fail_on_data_loss,
        gather_days,
        values_of(topics, registry, subject, schema),
        settings_of(catalog),
        table,
        tuple(partition_by or ()),
        deduplicate_by,
        deduplicate_within,
    ).check()
    others = packages_of(table_format, settings_of(catalog), packages)
    connector, conf = needs_connector(source), conf_of(table_format)
    openlineage = lineage_of(lineage)
    with (
        session(
            Submission.of(master, py_files, spark_conf),
            packages=others,
            connector=connector,
            conf=conf,
        ) as spark,
        openlineage.run(lambda: archive_job(spark, settings), spark.version) as run,
        shown_progress() as show,
    ):
        result = archive_topics(spark, settings, show)
        run.rows = result.rows
    if result.removed_files:
        note(f"removed {result.removed_files} files of a batch that was interrupted")
    note(f"archived {_rate(result.rows, result.seconds)} in {result.batches} batches to {folder}")


def replay(
    folder: Folder,
    topics: Topics = None,
    table_format: TableFormat = "parquet",
    table: TableName = "topics.records",
    catalog: CatalogProperties = None,
    bootstrap_server: TargetServer = DEFAULT_BOOTSTRAP_SERVER,
    prefix: Prefix = "",
    dead_letters: Annotated[
        bool,
        Option(
            "--dead-letters",
            help="Only values that did not decode when they were archived, with the reason.",
        ),
    ] = False,
    job: Job = "replay",
    per_transaction: PerTransaction = 20_000,
    replication_factor: Annotated[
        int, Option(help="Of topics that are made; -1 is the broker's own.")
    ] = -1,
    kafka: KafkaOptions = None,
    packages: Packages = None,
    lineage: LineagePlace = None,
    master: Master = "local[*]",
    py_files: PyFiles = None,
    spark_conf: SparkConf = None,
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
    from ...spark_connector.pipelines.lineage import replay_job

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
        settings_of(catalog),
        table,
    )
    others = packages_of(table_format, settings_of(catalog), packages)
    openlineage = lineage_of(lineage)
    conf = conf_of(table_format)
    with (
        session(
            Submission.of(master, py_files, spark_conf), packages=others, connector=False, conf=conf
        ) as spark,
        openlineage.run(lambda: replay_job(spark, settings), spark.version) as run,
        shown_progress() as show,
    ):
        result = replay_archive(spark, settings, show)
        run.rows = result.rows
    _show(result, "replayed")


def mirror(
    topics: Topics = None,
    pattern: Pattern = None,
    from_server: Annotated[
        str,
        Option("--from", metavar="HOST:PORT", help="A broker of the cluster that is read."),
    ] = "",
    bootstrap_server: TargetServer = DEFAULT_BOOTSTRAP_SERVER,
    prefix: Prefix = "",
    job: Job = "mirror",
    every: Every = None,
    per_transaction: PerTransaction = 20_000,
    replication_factor: Annotated[
        int, Option(help="Of topics that are made; -1 is the broker's own.")
    ] = -1,
    from_kafka: Annotated[
        list[str] | None,
        Option(
            "--from-kafka", metavar="NAME=VALUE", help="As --kafka, for the cluster that is read."
        ),
    ] = None,
    kafka: KafkaOptions = None,
    source: SourceFormat = "kafka",
    lineage: LineagePlace = None,
    master: Master = "local[*]",
    py_files: PyFiles = None,
    spark_conf: SparkConf = None,
) -> None:
    """Copy topics of one cluster to another, each record once, and go on where it stopped.

    ```
    odradek spark mirror orders --from old:9092 --bootstrap-server new:9092
    odradek spark mirror --pattern '.*' --from old:9092 -b new:9092 --every '5 seconds'
    ```
    """
    from ...spark_connector.pipelines import MirrorSettings, mirror_topics
    from ...spark_connector.pipelines.lineage import mirror_job

    if not from_server:
        fail("give the cluster that is read with --from HOST:PORT")
    settings = MirrorSettings(
        source_of(from_server, topics, pattern, from_kafka, source),
        _target(bootstrap_server, kafka, prefix, replication_factor),
        job,
        every,
        records_per_transaction=per_transaction,
    )
    openlineage = lineage_of(lineage)
    connector = needs_connector(source)
    with (
        session(Submission.of(master, py_files, spark_conf), connector=connector) as spark,
        openlineage.run(lambda: mirror_job(settings), spark.version) as run,
        shown_progress() as show,
    ):
        result = mirror_topics(spark, settings, show)
        run.rows = result.rows
    _show(result, "mirrored")


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

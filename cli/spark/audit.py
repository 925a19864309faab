"""`odradek spark audit`: what is wrong in topics, as a table, a page, and an exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer
from ..common.errors import fail
from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Exit, Option
from .options import (
    KafkaOptions,
    LineagePlace,
    Master,
    Pattern,
    PyFiles,
    RegistryUrl,
    SchemaFile,
    SourceFormat,
    SparkConf,
    Subject,
    Submission,
    Topics,
    lineage_of,
    needs_connector,
    packages_of,
    session,
    shown_progress,
    source_of,
    values_of,
)

if TYPE_CHECKING:
    from ...spark_connector.pipelines import AuditReport

Severity = Literal["warning", "error", "critical"]
EXIT_CODES = {"warning": 3, "error": 4, "critical": 5}


def audit(
    topics: Topics = None,
    pattern: Pattern = None,
    sequence: Annotated[
        str | None,
        Option(metavar="PART", help="What numbers a record: header:NAME or field:NAME."),
    ] = None,
    scope: Annotated[
        str,
        Option(
            metavar="PART",
            help="Within what the numbers run: topic, partition, or a part such as key.",
        ),
    ] = "topic",
    first_number: Annotated[
        int | None, Option(help="What each sequence should begin with.")
    ] = None,
    last_number: Annotated[int | None, Option(help="What each sequence should end with.")] = None,
    partitioner: Annotated[
        str,
        Option(
            help="any: a key is in one partition; murmur2: in Java's; crc32: in librdkafka's; none."
        ),
    ] = "any",
    decode: Annotated[
        str, Option(help="What values have to be: json, utf8, or none: anything.")
    ] = "none",
    avro_schema: Annotated[
        Path | None,
        Option(metavar="FILE", help="Values have to be Avro of the schema in this file."),
    ] = None,
    sent_at: Annotated[
        str | None,
        Option(metavar="PART", help="Where a record says when it was sent, in ms."),
    ] = None,
    future_seconds: Annotated[
        float, Option(min=0, help="So much ahead a timestamp may be.")
    ] = 60.0,
    html: Annotated[
        Path | None, Option(metavar="FILE", help="Write the report as one HTML file.")
    ] = None,
    expectations: Annotated[
        Path | None,
        Option(metavar="FILE", help="What is expected, in TOML: see above."),
    ] = None,
    fail_on: Annotated[
        Severity,
        Option(help="The least severity of a failed expectation that the exit code tells."),
    ] = "error",
    history: Annotated[
        str | None,
        Option(metavar="FOLDER", help="A table that gets each run, for trends and volumes."),
    ] = None,
    history_format: Annotated[
        str, Option(help="parquet, or iceberg: a table in a Hadoop catalog.")
    ] = "parquet",
    registry: RegistryUrl = None,
    subject: Subject = None,
    schema: SchemaFile = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka: KafkaOptions = None,
    source: SourceFormat = "kafka",
    lineage: LineagePlace = None,
    master: Master = "local[*]",
    py_files: PyFiles = None,
    spark_conf: SparkConf = None,
    json_output: JsonOutput = False,
) -> None:
    """Look at every record of some topics, and say what is wrong.

    Of each partition it counts records, bytes, tombstones and keys, and tells the times, sizes
    and offsets without a record, with the reason for each (a transaction's marker, an aborted
    record, compaction). It is a fault, and the exit code 1, if offsets are missing without a
    reason, a key is in two partitions, or a timestamp lies in the future; with --sequence also
    if numbers are lost, doubled or out of turn, and with --decode if a value is no JSON or text.

    ```
    odradek spark audit orders payments --html audit.html
    odradek spark audit orders --sequence header:number --scope header:producer
    odradek spark audit --pattern 'orders-.*' --decode json --partitioner murmur2
    odradek spark audit orders --expectations orders.toml --history audits/ --html audit.html
    ```

    A file of expectations has a table for each. A column is a part of a record (key, timestamp,
    header:NAME, field:NAME of JSON); with --registry or --schema also decoded.NAME.

    ```
    [[expect]]
    kind = "not_null"       # or range, unique, referential, freshness, volume
    column = "field:customer"
    threshold = 0.01        # 1 % of the records may have none
    severity = "warning"    # or error, which is usual, or critical

    [[expect]]
    kind = "volume"
    min_ratio = 0.5         # to the run before, which --history knows
    ```

    The exit code tells the worst: 5 a critical expectation failed, 4 one of severity error, 1
    there is a fault (or no audit was made), 3 a warning where --fail-on says so, else 0.
    """
    from ...spark_connector.pipelines import (
        AuditSettings,
        HistorySettings,
        audit_topics,
        read_expectations,
    )
    from ...spark_connector.pipelines.audit.html import as_html
    from ...spark_connector.pipelines.lineage import audit_job

    settings = AuditSettings(
        source_of(bootstrap_server, topics, pattern, kafka, source),
        sequence=sequence,
        scope=scope,
        first_number=first_number,
        last_number=last_number,
        partitioner=partitioner,
        decode=decode,
        avro_schema=avro_schema.read_text() if avro_schema else None,
        sent_at=sent_at,
        future_ms=round(future_seconds * 1000),
        values=values_of(topics, registry, subject, schema),
        expectations=read_expectations(expectations) if expectations else (),
        history=HistorySettings(history, history_format) if history else None,
    ).check()
    tables = packages_of(history_format, {}, None) if history is not None else []
    openlineage = lineage_of(lineage)
    connector = needs_connector(source)
    with (
        session(
            Submission.of(master, py_files, spark_conf), packages=tables, connector=connector
        ) as spark,
        openlineage.run(lambda: audit_job(settings), spark.version) as run,
        shown_progress() as show,
    ):
        report = run.report = audit_topics(spark, settings, show)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(as_html(report), encoding="utf-8")
        note(f"report: {html}")
    if json_output:
        show_json([report.as_json()])
    else:
        _show(report)
    leave(report, fail_on)


def leave(report: AuditReport, fail_on: Severity) -> None:
    """End with the exit code for the worst that was found, or go on where nothing was."""
    failed = [each for each in report.results if each.has_failed]
    if failed:
        note(
            f"failed expectations: {', '.join(dict.fromkeys(each.expectation for each in failed))}"
        )
    severities = list(EXIT_CODES)
    worst = report.worst_severity
    if worst is not None and severities.index(worst) < severities.index(fail_on):
        worst = None
    kinds = ", ".join(dict.fromkeys(fault.kind for fault in report.faults))
    if report.faults and worst in (None, "warning"):
        fail(f"the audit found faults: {kinds}")
    if report.faults:
        note(f"the audit found faults: {kinds}")
    if worst is not None:
        raise Exit(EXIT_CODES[worst])


def _show(report: AuditReport) -> None:
    from ...spark_connector.pipelines.audit.html import (
        EXPECTATION_COLUMNS,
        expectation_cells,
        partition_cells,
        partition_columns,
    )

    show_table(
        partition_columns(report),
        [partition_cells(each, report) for each in report.partitions],
        title=f"{report.records:,} records at {report.cluster}",
        legend="missing: offsets without a record; explained: markers, aborted or compacted ones",
        empty="there are no such partitions",
    )
    if report.results:
        show_table(EXPECTATION_COLUMNS, [expectation_cells(each) for each in report.results])
    for text in report.notes:
        note(f"note: {text}")
    for fault in report.faults:
        print(f"{fault.kind}: {fault.sentence}")
        for sample in fault.samples:
            print(f"  {sample}")
    note(f"the audit took {report.seconds:.1f} s")

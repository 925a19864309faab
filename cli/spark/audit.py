"""`odradek spark audit`: what is wrong in topics, as a table, a page, and an exit status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..common.connection import DEFAULT_BOOTSTRAP_SERVER, BootstrapServer
from ..common.errors import fail
from ..common.show import JsonOutput, note, show_json, show_table
from .options import (
    KafkaOptions,
    Master,
    Pattern,
    SourceFormat,
    Topics,
    needs_connector,
    session,
    shown_progress,
    source_of,
)

if TYPE_CHECKING:
    from ...spark_connector.pipelines import AuditReport


def audit(
    topics: Topics = None,
    pattern: Pattern = None,
    sequence: Annotated[
        str | None,
        typer.Option(metavar="PART", help="What numbers a record: header:NAME or field:NAME."),
    ] = None,
    scope: Annotated[
        str,
        typer.Option(
            metavar="PART",
            help="Within what the numbers run: topic, partition, or a part such as key.",
        ),
    ] = "topic",
    first_number: Annotated[
        int | None, typer.Option(help="What each sequence should begin with.")
    ] = None,
    last_number: Annotated[
        int | None, typer.Option(help="What each sequence should end with.")
    ] = None,
    partitioner: Annotated[
        str,
        typer.Option(
            help="any: a key is in one partition; murmur2: in Java's; crc32: in librdkafka's; none."
        ),
    ] = "any",
    decode: Annotated[
        str, typer.Option(help="What values have to be: json, utf8, or none: anything.")
    ] = "none",
    avro_schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Values have to be Avro of the schema in this file."),
    ] = None,
    sent_at: Annotated[
        str | None,
        typer.Option(metavar="PART", help="Where a record says when it was sent, in ms."),
    ] = None,
    future_seconds: Annotated[
        float, typer.Option(min=0, help="So much ahead a timestamp may be.")
    ] = 60.0,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML file.")
    ] = None,
    bootstrap_server: BootstrapServer = DEFAULT_BOOTSTRAP_SERVER,
    kafka: KafkaOptions = None,
    source: SourceFormat = "kafka",
    master: Master = "local[*]",
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
    ```
    """
    from ...spark_connector.pipelines import AuditSettings, audit_topics
    from ...spark_connector.pipelines.audit.html import as_html

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
    ).check()
    connector = needs_connector(source)
    with session(master, connector=connector) as spark, shown_progress() as show:
        report = audit_topics(spark, settings, show)
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(as_html(report), encoding="utf-8")
        note(f"report: {html}")
    if json_output:
        show_json([report.as_json()])
    else:
        _show(report)
    if not report.is_clean:
        fail(f"the audit found faults: {', '.join(dict.fromkeys(f.kind for f in report.faults))}")


def _show(report: AuditReport) -> None:
    from ...spark_connector.pipelines.audit.html import partition_cells, partition_columns

    show_table(
        partition_columns(report),
        [partition_cells(each, report) for each in report.partitions],
        title=f"{report.records:,} records at {report.cluster}",
        legend="missing: offsets without a record; explained: markers, aborted or compacted ones",
        empty="there are no such partitions",
    )
    for text in report.notes:
        note(f"note: {text}")
    for fault in report.faults:
        print(f"{fault.kind}: {fault.sentence}")
        for sample in fault.samples:
            print(f"  {sample}")
    note(f"the audit took {report.seconds:.1f} s")

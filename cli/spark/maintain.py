"""`odradek spark maintain`: a table's small files, old snapshots and lost files."""

from __future__ import annotations

from typing import Annotated

from ..common.show import JsonOutput, show_json, show_table
from ..declarations import Argument, Option
from .options import (
    CatalogProperties,
    Master,
    Packages,
    PyFiles,
    SparkConf,
    Submission,
    TableName,
    conf_of,
    packages_of,
    session,
    settings_of,
    shown_progress,
)


def maintain(
    folder: Annotated[
        str,
        Argument(
            metavar="FOLDER", show_default=False, help="The table's warehouse; of Delta, the table."
        ),
    ],
    table_format: Annotated[str, Option("--format", help="iceberg or delta.")] = "iceberg",
    table: TableName = "topics.records",
    catalog: CatalogProperties = None,
    target_mb: Annotated[int, Option(min=1, help="Megabytes that a data file should have.")] = 128,
    files_min: Annotated[
        int,
        Option("--min-files", min=2, help="Small files of a partition that are worth it."),
    ] = 5,
    keep_days: Annotated[
        float, Option(min=0, help="How long old snapshots can still be read.")
    ] = 5.0,
    orphan_days: Annotated[
        float, Option(min=1, help="How old a file must be that no snapshot knows.")
    ] = 3.0,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    packages: Packages = None,
    master: Master = "local[*]",
    py_files: PyFiles = None,
    spark_conf: SparkConf = None,
    json_output: JsonOutput = False,
) -> None:
    """Put a table's small files together, and remove what is old.

    Many small batches make many small files, which are slow to read. They are put together by
    partition, manifests are rewritten, snapshots that are older than --keep-days expire, and files
    that no snapshot knows, such as those of a run that was killed, are removed. Archives may
    run at the same time. If it is killed, the next run does what is left. Of Delta, files go that
    no version needs which is younger than --keep-days and --orphan-days.

    ```
    odradek spark maintain warehouse/ --dry-run
    odradek spark maintain warehouse/ --keep-days 1
    odradek spark maintain lake/orders --format delta
    odradek spark maintain warehouse/ --catalog type=rest --catalog uri=http://localhost:8181
    ```
    """
    from ...spark_connector.pipelines import MaintainSettings, TableLocation, maintain_table

    properties = settings_of(catalog)
    settings = MaintainSettings(
        TableLocation(folder, properties, table),
        target_mb << 20,
        files_min,
        keep_days,
        orphan_days,
        dry_run,
        table_format,
    ).check()
    others, conf = packages_of(table_format, properties, packages), conf_of(table_format)
    with (
        session(
            Submission.of(master, py_files, spark_conf), packages=others, connector=False, conf=conf
        ) as spark,
        shown_progress() as show,
    ):
        steps = maintain_table(spark, settings, show)
    if json_output:
        show_json([each._asdict() for each in steps])
        return
    title = "would be done" if dry_run else "done"
    show_table(["step", title], [[each.step, each.outcome] for each in steps])

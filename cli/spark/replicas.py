"""`odradek spark verify-replicas`: whether all replicas of a stopped cluster are the same."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from ..common.show import JsonOutput, note, show_json, show_table
from ..declarations import Exit, Option
from ..log.folders import CLEAN, DAMAGED, Folders, existing, leave_unreadable, plural
from .options import Master, PyFiles, SparkConf, Submission, session, shown_progress

if TYPE_CHECKING:
    from ...spark_connector.pipelines import ReplicaReport


def verify_replicas(
    folders: Folders,
    topics: Annotated[
        list[str] | None,
        Option("--topic", metavar="TOPIC", help="Only this topic; repeatable."),
    ] = None,
    replicas: Annotated[
        int | None, Option(min=1, help="How many replicas each partition must have.")
    ] = None,
    deep: Annotated[
        bool,
        Option("--deep", help="Compare each record, also where checksums are the same."),
    ] = False,
    live: Annotated[
        bool, Option("--live", help="Brokers are running: what they write may differ.")
    ] = False,
    master: Master = "local[*]",
    py_files: PyFiles = None,
    spark_conf: SparkConf = None,
    json_output: JsonOutput = False,
) -> None:
    """Compare the replicas in the data folders of a stopped cluster.

    Below the high watermark each replica of a partition must hold the same records at the same
    offsets, with the same leader epochs. What lies above it may differ, and so may what compaction
    or retention has removed from one of them already. The folders may be odradek's or Kafka's, or
    copies of them, and Spark compares many at once.

    ```
    odradek spark verify-replicas broker-1 broker-2 broker-3
    odradek spark verify-replicas broker-*/data --topic orders --replicas 3
    ```

    Ends with 0 if all are the same, 1 if something differs, 2 if something could not be read.
    """
    from ...spark_connector import SparkConnectorError
    from ...spark_connector.pipelines import VerifyReplicasSettings
    from ...spark_connector.pipelines import verify_replicas as verify

    settings = VerifyReplicasSettings(
        tuple(existing(folders)), tuple(topics or ()), replicas, deep, live
    )
    if live:
        note("brokers may be writing: what changes while it is read can look like a difference")
    with ExitStack() as stack:
        try:
            spark = stack.enter_context(
                session(Submission.of(master, py_files, spark_conf), connector=False)
            )
            show = stack.enter_context(shown_progress())
            report = verify(spark, settings, show)
        except SparkConnectorError as error:
            leave_unreadable(str(error))
    if json_output:
        show_json([report.as_json()])
    else:
        _show(report)
    raise Exit(CLEAN if report.is_clean else DAMAGED)


def _show(report: ReplicaReport) -> None:
    show_table(
        ["partition", "replicas", "from offset", "high watermark", "ends"],
        [
            [
                f"{each.topic}-{each.partition}",
                len(each.folders),
                each.begin,
                each.until,
                " ".join(map(str, each.ends)),
            ]
            for each in report.partitions
        ],
        empty="no partition has a second replica in the folders",
    )
    for text in report.notes:
        note(f"note: {text}")
    for each in report.differences:
        print(f"{each.kind}: {each.sentence}")
        for sample in each.samples:
            print(f"  {sample}")
    offsets = sum(each.offsets for each in report.partitions)
    note(
        f"{plural(len(report.partitions), 'partition')} with {plural(offsets, 'offset')} compared"
        f" in {report.seconds:.1f} s: {plural(len(report.differences), 'finding')}"
    )

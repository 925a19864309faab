"""All replicas of a stopped cluster, compared below the high watermark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ....log_tools.verify.data_folder import hold_locks
from ....storage.errors import LogDirectoryError
from ...data_sources import register
from ...errors import SparkConnectorError
from ..progress import OnProgress, StepClock, no_progress, with_jobs_watched
from ..topic_source import pipeline_session
from .frames import (
    Compared,
    assigned,
    batches_of,
    differing_records,
    ends_and_damage,
    plan_frame,
    ranges_in_doubt,
    records_of,
)
from .plan import ReplicatedPartition, replicated_partitions
from .report import (
    KINDS,
    ComparedPartition,
    ReplicaDifference,
    ReplicaReport,
    VerifyReplicasSettings,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Partition = tuple[str, int]


def verify_replicas(
    spark: SparkSession, settings: VerifyReplicasSettings, on_progress: OnProgress = no_progress
) -> ReplicaReport:
    """Compare the logs of brokers that are stopped.

    Below the high watermark every replica must hold the same records, at the same offsets and of
    the same leader epochs. What lies above it may differ; what retention has removed from one
    replica already is not looked at in the others, and what compaction may have removed may be
    missing.

    Args:
        spark: any session; no connector is needed.
        settings: what is compared.
        on_progress: is called with the progress.

    Raises:
        SparkConnectorError: a broker is running on a folder, or one cannot be read.
    """
    session = register(pipeline_session(spark))
    with ExitStack() as stack:
        if not settings.live:
            try:
                hold_locks(settings.folders, stack, exclusive=False)
            except LogDirectoryError as error:
                raise SparkConnectorError(str(error)) from None
            except OSError as error:
                raise SparkConnectorError(f"a folder cannot be read: {error}") from None
        return _Verification(session, settings, on_progress).report()


class _Verification:
    """One run."""

    def __init__(
        self, session: SparkSession, settings: VerifyReplicasSettings, on_progress: OnProgress
    ) -> None:
        self._session = session
        self._settings = settings
        self._tell = on_progress
        self._notes: list[str] = []
        self._differences: list[ReplicaDifference] = []

    def report(self) -> ReplicaReport:
        clock = StepClock("comparing", self._tell)
        found = replicated_partitions(self._settings.folders, self._settings.topics)
        if not found:
            raise SparkConnectorError("there are no such partitions in the folders")
        for each in found:
            self._differences += self._of_folders(each)
        several = [each for each in found if len(each.replicas) > 1]
        if len(several) < len(found):
            self._notes.append(
                f"{len(found) - len(several):,} of {len(found):,} partitions have one replica in"
                " the folders: there is nothing to compare them with"
            )
        compared = self._compared(several) if several else []
        order = {kind: place for place, kind in enumerate(KINDS)}
        self._differences.sort(key=lambda each: (each.topic, each.partition, order[each.kind]))
        return ReplicaReport(
            tuple(self._shown(each) for each in compared),
            tuple(self._differences),
            tuple(self._notes),
            clock.seconds,
        )

    def _of_folders(self, found: ReplicatedPartition) -> Iterator[ReplicaDifference]:
        """What the folders tell without their logs."""
        where = (found.topic, found.partition)
        replicas = self._settings.replicas
        if replicas is not None and len(found.replicas) < replicas:
            folders = ", ".join(each.folder for each in found.replicas)
            yield ReplicaDifference(
                "absent", *where, replicas - len(found.replicas), (f"it is only in {folders}",)
            )
        ids = Counter(each.topic_id for each in found.replicas if each.topic_id is not None)
        if len(ids) > 1:
            usual, _ = ids.most_common(1)[0]
            others = [each for each in found.replicas if each.topic_id not in (usual, None)]
            samples = tuple(f"that in {each.folder} has another topic id" for each in others)
            yield ReplicaDifference("other topic", *where, len(others), samples)

    def _compared(self, several: list[ReplicatedPartition]) -> list[Compared]:
        batches = batches_of(
            self._session,
            self._settings.folders,
            assigned((each.topic, each.partition) for each in several),
        ).persist()
        offsets = sum(len(each.replicas) * (each.high_watermark or 0) for each in several)
        try:
            rows = self._step("reading", offsets, lambda: ends_and_damage(batches))
            found_rows = {(row["folder"], row["topic"], row["partition"]): row for row in rows}
            compared = [self._bounds(each, found_rows) for each in several]
            for each in compared:
                self._differences += _short(each)
            self._differences += _damaged(rows)
            self._note_starts(several)
            plan = plan_frame(self._session, compared)
            if self._settings.deep:
                ranges = {each[:2]: (each.begin, each.until) for each in compared}
            else:
                ranges = self._step(
                    "comparing batches", offsets, lambda: ranges_in_doubt(batches, plan)
                )
        finally:
            batches.unpersist()
        ranges = {where: each for where, each in ranges.items() if each[0] < each[1]}
        if ranges:
            self._differences += self._record_differences(ranges, plan)
        return compared

    def _bounds(self, found: ReplicatedPartition, rows: dict[Any, Any]) -> Compared:
        where = (found.topic, found.partition)
        ends = []
        for each in found.replicas:
            row = rows.get((each.folder, *where))
            ends.append((each.folder, max(row["end"] if row else 0, each.empty_end)))
        until = found.high_watermark
        if until is None:
            until = min(end for _, end in ends)
            self._notes.append(
                f"no replica of {where[0]}-{where[1]} has written down a high watermark: it is"
                f" compared up to {until}, where the shortest ends"
            )
        return Compared(*where, found.begin, until, found.cleaned_to, tuple(ends))

    def _note_starts(self, several: list[ReplicatedPartition]) -> None:
        later = [each for each in several if len({one.start for one in each.replicas}) > 1]
        if later:
            first = later[0]
            self._notes.append(
                f"the replicas of {len(later):,} partitions do not begin at the same offset, and"
                f" are compared from the last of them on ({first.topic}-{first.partition} from"
                f" {first.begin})"
            )

    def _record_differences(
        self, ranges: dict[Partition, tuple[int, int]], plan: DataFrame
    ) -> Iterator[ReplicaDifference]:
        records = records_of(self._session, self._settings.folders, ranges)
        count = sum(until - begin for begin, until in ranges.values())
        rows = self._step("comparing records", count, lambda: differing_records(records, plan))
        groups: dict[tuple[str, int, str, int], list[Any]] = {}
        for row in rows:
            key = (row["topic"], row["partition"], row["kind"], row["count"])
            groups.setdefault(key, []).append(row)
        for (topic, partition, kind, total), members in groups.items():
            samples = tuple(_sample(row) for row in sorted(members, key=lambda row: row["offset"]))
            yield ReplicaDifference(kind, topic, partition, total, samples)

    def _step(self, name: str, rows: int, work: Callable[[], Any]) -> Any:
        return with_jobs_watched(self._session, work, rows, StepClock(name, self._tell))

    def _shown(self, each: Compared) -> ComparedPartition:
        folders = tuple(folder for folder, _ in each.ends)
        ends = tuple(end for _, end in each.ends)
        return ComparedPartition(*each[:2], folders, each.begin, each.until, ends)


def _short(compared: Compared) -> Iterator[ReplicaDifference]:
    short = [(folder, end) for folder, end in compared.ends if end < compared.until]
    if short:
        samples = tuple(
            f"that in {folder} ends at {end}, and the high watermark is {compared.until}"
            for folder, end in short
        )
        yield ReplicaDifference("short", compared.topic, compared.partition, len(short), samples)


def _damaged(rows: list[Any]) -> Iterator[ReplicaDifference]:
    for row in sorted(rows, key=lambda row: (row["topic"], row["partition"], row["folder"])):
        if row["damaged"]:
            first = row["first"]
            sample = (
                f"offsets {first['baseOffset']} to {first['lastOffset']} in {row['folder']},"
                f" segment {first['segment']}, are the first"
            )
            yield ReplicaDifference(
                "damaged", row["topic"], row["partition"], row["damaged"], (sample,)
            )


def _sample(row: Any) -> str:
    if row["kind"] == "missing":
        there = ", ".join(each["folder"] for each in row["prints"])
        return f"offset {row['offset']} is in {there}, but not in {', '.join(row['absent'])}"
    by_print: dict[str, list[str]] = {}
    for each in row["prints"]:
        by_print.setdefault(each["print"], []).append(each["folder"])
    alike = sorted(by_print.values(), key=lambda folders: (-len(folders), folders))
    groups = " unlike ".join(" and ".join(folders) for folders in alike)
    return f"offset {row['offset']} has another {', '.join(row['fields'])}: {groups}"

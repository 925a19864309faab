"""The audit of topics: read once, ask many questions, report."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...kafka_source.cluster import admin_client
from ..progress import OnProgress, StepClock, first_line, no_progress, with_jobs_watched
from ..topic_source import pipeline_session
from .checks import Check, checks_of, measured
from .frames import Facts, decoded, missing_ranges, narrow, partition_facts
from .gaps import explained_gaps
from .history import AuditHistory
from .keys import key_faults
from .plots import plots_of
from .report import FAULTS, AuditFault, AuditReport, AuditSettings, PartitionAudit
from .results import ExpectationResult, result_of
from .sequence import sequence_faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Partition = tuple[str, int]
CONFIG_TIMEOUT_S = 30.0


def audit_topics(
    spark: SparkSession, settings: AuditSettings, on_progress: OnProgress = no_progress
) -> AuditReport:
    """Look at every partition of some topics, as they are now.

    The topics are read once, up to the offsets that are theirs at the start; later questions
    go to a narrow table of them, which Spark keeps in memory or on disk.

    Raises:
        SparkConnectorError: a setting makes no sense, or the topics cannot be read.
    """
    settings.check()
    return _Audit(pipeline_session(spark), settings, on_progress).report()


class _Audit:
    """One run."""

    def __init__(
        self, session: SparkSession, settings: AuditSettings, on_progress: OnProgress
    ) -> None:
        self._session = session
        self._settings = settings
        self._tell = on_progress
        self._at_ms = time.time_ns() // 1_000_000
        self._run_id = str(uuid.uuid4())
        self._history = (
            None if settings.history is None else AuditHistory(session, settings.history)
        )
        cluster = settings.source.cluster()
        self._partitions = cluster.partitions()
        self._topics = sorted({topic for topic, _ in self._partitions})
        self._starts = cluster.earliest(self._partitions)
        self._ends = cluster.latest(self._partitions)
        self._offsets = sum(self._ends[each] - self._starts[each] for each in self._partitions)
        self._notes: list[str] = []
        self._unexplained: list[AuditFault] = []

    def report(self) -> AuditReport:
        clock = StepClock("auditing", self._tell)
        records = decoded(self._records(), self._settings)
        checks = checks_of(records, self._settings.expectations, self._topics)
        frame = narrow(records, self._settings, checks).persist()
        try:
            facts = self._step(
                "reading", lambda: partition_facts(frame, self._future_from_ms, checks)
            )
            explained = self._step("looking at gaps", lambda: self._explained(frame, facts))
            faults = [*self._unexplained, *self._faults_in(facts)]
            faults += self._step("looking at keys", lambda: list(self._key_faults(frame)))
            if self._settings.sequence is not None:
                faults += self._step(
                    "looking at the sequence", lambda: list(sequence_faults(frame, self._settings))
                )
            results = self._step(
                "looking at expectations", lambda: self._results(frame, checks, facts)
            )
            audits = [self._partition(each, facts, explained) for each in self._partitions]
            plots = self._step("counting for the plots", lambda: plots_of(frame, audits))
        finally:
            frame.unpersist()
        self._note_what_is_no_fault(audits)
        order = {kind: place for place, kind in enumerate(FAULTS)}
        faults.sort(key=lambda fault: (order[fault.kind], fault.topic, fault.partition or 0))
        if self._history is not None:
            cluster = self._settings.source.bootstrap_servers
            self._history.append(self._run_id, self._at_ms, cluster, results)
        return AuditReport(
            run_id=self._run_id,
            cluster=self._settings.source.bootstrap_servers,
            at_ms=self._at_ms,
            seconds=clock.seconds,
            partitions=tuple(audits),
            faults=tuple(faults),
            notes=tuple(self._notes),
            plots=tuple(plots),
            results=results,
        )

    def _step(self, name: str, work: Any) -> Any:
        clock = StepClock(name, self._tell)
        return with_jobs_watched(self._session, work, self._offsets, clock)

    @property
    def _future_from_ms(self) -> int:
        return self._at_ms + self._settings.future_ms

    def _records(self) -> DataFrame:
        """Just the offsets between the start and the end that were requested first."""
        import json

        starts: dict[str, dict[str, int]] = {}
        ends: dict[str, dict[str, int]] = {}
        for topic, partition in self._partitions:
            starts.setdefault(topic, {})[str(partition)] = self._starts[topic, partition]
            ends.setdefault(topic, {})[str(partition)] = self._ends[topic, partition]
        return self._settings.source.read(
            self._session, startingOffsets=json.dumps(starts), endingOffsets=json.dumps(ends)
        )

    # --- Gaps ----------------------------------------------------------------------------------

    def _missing(self, where: Partition, facts: Facts) -> int:
        row = facts.totals.get(where)
        offsets = self._ends[where] - self._starts[where]
        return offsets - (row["records"] if row is not None else 0)

    def _explained(self, frame: DataFrame, facts: Facts) -> dict[Partition, int]:
        """How many of each partition's missing offsets there is a reason for."""
        from pyspark.errors import PySparkException

        gapped = [each for each in self._partitions if self._missing(each, facts) > 0]
        source = self._settings.source
        protocol = source.kafka_options.get("security.protocol", "PLAINTEXT").upper()
        if not gapped or not self._settings.explain_gaps:
            return {}
        if protocol != "PLAINTEXT":
            self._notes.append(f"missing offsets are not explained over {protocol}")
            return {}
        runs = missing_ranges(frame, gapped).unionByName(
            self._session.createDataFrame(
                list(self._runs_at_ends(gapped, facts)),
                "topic STRING, partition INT, begin BIGINT, until BIGINT",
            )
        )
        compacted = self._compacted({topic for topic, _ in gapped})
        try:
            found = list(explained_gaps(runs, source.bootstrap_servers, compacted))
        except PySparkException as error:
            self._notes.append(f"missing offsets are not explained: {first_line(error)}")
            return {}
        self._unexplained += [fault for _, _, fault in found if fault is not None]
        return {where: count for where, count, _ in found}

    def _runs_at_ends(
        self, gapped: list[Partition], facts: Facts
    ) -> Iterator[tuple[str, int, int, int]]:
        for where in gapped:
            row = facts.totals.get(where)
            start, end = self._starts[where], self._ends[where]
            first = end if row is None else row["first_offset"]
            if start < first:
                yield *where, start, first
            if row is not None and row["last_offset"] + 1 < end:
                yield *where, row["last_offset"] + 1, end

    def _compacted(self, topics: set[str]) -> dict[str, bool]:
        from confluent_kafka import admin as kafka_admin

        admin = admin_client(self._settings.source.client_settings())
        resource_of: Any = kafka_admin.ConfigResource  # type: ignore[attr-defined]  # not in __all__
        resources = [resource_of(resource_of.Type.TOPIC, topic) for topic in sorted(topics)]
        answers = admin.describe_configs(resources, request_timeout=CONFIG_TIMEOUT_S)
        return {
            resource.name: "compact" in future.result()["cleanup.policy"].value
            for resource, future in answers.items()
        }

    # --- Faults --------------------------------------------------------------------------------

    def _faults_in(self, facts: Facts) -> Iterator[AuditFault]:
        for where, row in sorted(facts.totals.items()):
            if row["future"]:
                first = row["future_sample"]
                ahead_s = (first["ms"] - self._at_ms) / 1000
                sample = f"offset {first['offset']} is {ahead_s:,.0f} s ahead"
                yield AuditFault("future", *where, row["future"], (sample,))
            if row["poison"]:
                sample = f"offset {row['poison_sample']} is the first"
                yield AuditFault("poison", *where, row["poison"], (sample,))

    def _key_faults(self, frame: DataFrame) -> Iterator[AuditFault]:
        counts: dict[str, int] = {}
        for topic, _ in self._partitions:
            counts[topic] = counts.get(topic, 0) + 1
        return key_faults(frame, self._settings.partitioner, counts)

    # --- Expectations --------------------------------------------------------------------------

    def _results(
        self, frame: DataFrame, checks: tuple[Check, ...], facts: Facts
    ) -> tuple[ExpectationResult, ...]:
        if not checks:
            return ()
        found = measured(frame, checks, facts.totals, self._topics, self._settings.source)
        names = [check.expectation.name for check in checks]
        trends = {} if self._history is None else self._history.trends(names)
        return tuple(
            result_of(
                check.expectation,
                topic,
                found[check.place, topic],
                self._at_ms,
                trends.get((check.expectation.name, topic), ()),
            )
            for check in checks
            for topic in self._topics
            if check.concerns(topic)
        )

    # --- Reporting -----------------------------------------------------------------------------

    def _partition(
        self, where: Partition, facts: Facts, explained: dict[Partition, int]
    ) -> PartitionAudit:
        row: Any = facts.totals.get(where)
        order: Any = facts.orders.get(where)
        missing = self._missing(where, facts)
        looked_at = not missing or where in explained
        counted = {} if row is None else row.asDict()
        latencies = counted.get("latencies")
        sizes = counted.get("sizes") or (0, 0, 0, 0)
        return PartitionAudit(
            topic=where[0],
            partition=where[1],
            start_offset=self._starts[where],
            end_offset=self._ends[where],
            records=counted.get("records", 0),
            missing_offsets=missing,
            explained_offsets=explained.get(where, 0) if looked_at else None,
            bytes=counted.get("bytes", 0),
            tombstones=counted.get("tombstones", 0),
            null_keys=counted.get("null_keys", 0),
            keys=counted.get("keys", 0),
            first_ms=counted.get("first_ms"),
            last_ms=counted.get("last_ms"),
            backwards=order["backwards"] if order is not None else 0,
            backwards_ms_max=order["most"] if order is not None else 0,
            sizes=(sizes[0], sizes[1], sizes[2], sizes[3]),
            latencies_ms=None if latencies is None else tuple(latencies),
            unnumbered=counted.get("unnumbered", 0) if self._settings.sequence else 0,
        )

    def _note_what_is_no_fault(self, audits: list[PartitionAudit]) -> None:
        unnumbered = sum(each.unnumbered for each in audits)
        if unnumbered:
            self._notes.append(
                f"{unnumbered:,} records have no number in {self._settings.sequence}, and were not"
                " looked at for losses, copies and swaps"
            )
        unexplained = sum(each.missing_offsets for each in audits if each.explained_offsets is None)
        if unexplained:
            self._notes.append(
                f"{unexplained:,} offsets have no record, and nobody looked why: markers of"
                " transactions, aborted records, compaction, or a loss"
            )
        backwards = sum(each.backwards for each in audits)
        if backwards:
            most = max(each.backwards_ms_max for each in audits)
            self._notes.append(
                f"{backwards:,} records have an earlier timestamp than the one before them, at most"
                f" by {most:,} ms; with several producers that is usual"
            )

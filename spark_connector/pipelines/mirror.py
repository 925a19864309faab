"""Topics of one cluster to another: each record once, in the order of its partition."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ...common.sentinels import EARLIEST_TIMESTAMP
from ..errors import SparkConnectorError
from .copy_positions import position_consumer, read_positions
from .progress import OnProgress, StepClock, follow_stream, no_progress
from .replay import ROWS_PER_ARROW_BATCH, run_copy
from .topic_source import TopicSource, pipeline_session
from .topic_target import TopicNeeds, TopicTarget, ensure_topics
from .transactional_copy import RECORDS_PER_TRANSACTION, CopyPlan, CopyResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OFFSETS_PER_BATCH_MAX = 500_000


class MirrorSettings(NamedTuple):
    """What is mirrored, and where to."""

    source: TopicSource
    target: TopicTarget
    job: str = "mirror"
    """Names the positions in the target cluster."""
    continuous_every: str | None = None
    """None: copy what is there now, and end. Else go on, at this interval (`5 seconds`)."""
    offsets_per_batch_max: int = OFFSETS_PER_BATCH_MAX
    records_per_transaction: int = RECORDS_PER_TRANSACTION


def mirror_topics(
    spark: SparkSession, settings: MirrorSettings, on_progress: OnProgress = no_progress
) -> CopyResult:
    """Copy what the source's topics hold, and the target's do not.

    As `replay_archive`, with the source cluster in the lake's place. The positions in the target
    are the only checkpoint: each run begins there, so no folder of a driver can disagree with the
    data.

    Raises:
        SparkConnectorError: a cluster will not do, a target topic holds what this job did not
            write, or the source has deleted what was not copied yet.
    """
    session = pipeline_session(spark)
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(ROWS_PER_ARROW_BATCH))
    plan = CopyPlan(
        settings.job,
        settings.target.settings(),
        settings.target,
        settings.records_per_transaction,
    )
    if settings.source.bootstrap_servers == settings.target.bootstrap_servers:
        _require_other_names(settings)
    starts = _starts(settings, plan)
    cluster = settings.source.cluster()
    made: dict[str, int] = {}
    counts = {"copied": 0, "skipped": 0}

    def ensure(partitions: list[tuple[str, int]]) -> None:
        """A topic or partition may come to the source under a query."""
        found = Counter(settings.target.name_of(topic) for topic, _ in partitions)
        more = {name: count for name, count in found.items() if count > made.get(name, 0)}
        if more:
            ensure_topics(settings.target, {name: TopicNeeds(n) for name, n in more.items()})
            made.update(more)

    def write(batch: DataFrame, number: int) -> None:
        partitions = cluster.partitions()
        ensure(partitions)
        for row in run_copy(batch, plan, len(partitions)):
            counts["copied"] += row["copied"]
            counts["skipped"] += row["skipped"]

    ensure([(topic, int(each)) for topic, found in starts.items() for each in found])
    clock = StepClock("mirroring", on_progress)
    ending = settings.source.ending(settings.continuous_every)
    with tempfile.TemporaryDirectory(prefix="odradek-mirror-") as folder:
        records = settings.source.read_stream(
            session,
            startingOffsets=json.dumps(starts),
            maxOffsetsPerTrigger=str(settings.offsets_per_batch_max),
            **ending,
        )
        writer = records.writeStream.option("checkpointLocation", folder).foreachBatch(write)
        writer = writer.trigger(**settings.source.trigger(settings.continuous_every))
        follow_stream(writer.start(), clock, stops=bool(ending))
    return CopyResult(counts["copied"], counts["skipped"], clock.seconds)


def _require_other_names(settings: MirrorSettings) -> None:
    for topic, _ in settings.source.cluster().partitions():
        if settings.target.name_of(topic) == topic:
            raise SparkConnectorError(
                f"topic {topic} would be copied onto itself; give a prefix, or another name"
            )


def _starts(settings: MirrorSettings, plan: CopyPlan) -> dict[str, dict[str, int]]:
    """Where each partition goes on, in the JSON of Spark's source."""
    partitions = settings.source.cluster().partitions()
    consumer = position_consumer(plan.settings, plan.job, settled=False)
    targets = {each: (settings.target.name_of(each[0]), each[1]) for each in partitions}
    positions = read_positions(consumer, targets.values())
    consumer.close()
    starts: dict[str, dict[str, int]] = {}
    for (topic, partition), target in targets.items():
        position = positions.get(target)
        starts.setdefault(topic, {})[str(partition)] = (
            position.offset if position else EARLIEST_TIMESTAMP
        )
    return starts

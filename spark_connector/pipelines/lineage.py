"""What a pipeline read and wrote, for OpenLineage: an event when it starts, and one when it ends.

Where events go is configured as in any other program with OpenLineage's own client: by the file
that `OPENLINEAGE_CONFIG` names, by `OPENLINEAGE_URL`, or by an argument. Datasets are called as
OpenLineage's naming has it, so that the lineage of other programs on the same topics fits.

Nothing here may keep a pipeline from its work. Events are sent by a thread of their own, for which
the end of a run waits a few seconds; what goes wrong is warned of once.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import SparkConnectorError
from .archive import ArchiveSettings, TableLocation, read_archive
from .archive.columns import SCHEMA
from .archive.files import local_path
from .archive.settings import ICEBERG
from .audit.report import AuditReport, AuditSettings
from .mirror import MirrorSettings
from .replay import ReplaySettings
from .topic_source import TopicSource
from .topic_target import TopicTarget

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent
    from pyspark.sql import SparkSession

PRODUCER = "urn:odradek:spark-connector"
NAMESPACE = "odradek"
SEND_WAIT_S = 10.0
"""So long the end of a run waits for its events to be sent."""

RECORD_FIELDS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}

Fields = Mapping[str, str]
Warn = Callable[[str], None]


class LineageDataset(NamedTuple):
    """A topic or a folder."""

    namespace: str
    name: str
    fields: Fields = RECORD_FIELDS
    """The types of its columns, as Spark writes them."""


class LineageJob(NamedTuple):
    """What a pipeline does, whenever it runs."""

    name: str
    inputs: tuple[LineageDataset, ...]
    outputs: tuple[LineageDataset, ...] = ()
    is_streaming: bool = False


class LineageRun:
    """One run of a job; whoever runs it says here what came of it."""

    def __init__(self) -> None:
        self.rows: int | None = None
        """Records that were copied."""
        self.report: AuditReport | None = None
        """What an audit found in the inputs."""


# --- Jobs of the pipelines ---------------------------------------------------------------------


def archive_job(spark: SparkSession, settings: ArchiveSettings) -> LineageJob:
    """Topics to a folder."""
    return LineageJob(
        f"archive.{_last_part(settings.folder)}",
        _topics_read(settings.source),
        (_lake(settings.location, settings.table_format, _archive_fields(spark, settings)),),
        settings.continuous_every is not None,
    )


def replay_job(spark: SparkSession, settings: ReplaySettings) -> LineageJob:
    """A folder to topics: those of the settings, or all that the folder holds."""
    topics = settings.topics
    place, kind = settings.location, settings.table_format
    if not topics:
        rows = read_archive(spark, settings.folder, kind, location=place)
        topics = tuple(sorted(row["topic"] for row in rows.select("topic").distinct().collect()))
    return LineageJob(
        f"replay.{settings.job}",
        (_lake(place, kind, _fields_of(spark, SCHEMA)),),
        _topics_written(settings.target, topics),
    )


def mirror_job(settings: MirrorSettings) -> LineageJob:
    """Topics to topics."""
    read = _topics_read(settings.source)
    return LineageJob(
        f"mirror.{settings.job}",
        read,
        _topics_written(settings.target, tuple(each.name for each in read)),
        settings.continuous_every is not None,
    )


def audit_job(settings: AuditSettings) -> LineageJob:
    """Topics to no more than a report."""
    source = settings.source
    name = source.pattern if source.pattern is not None else ",".join(source.topics)
    return LineageJob(f"audit.{name}", _topics_read(source))


def _topics_read(source: TopicSource) -> tuple[LineageDataset, ...]:
    topics = sorted({topic for topic, _ in source.cluster().partitions()})
    return tuple(LineageDataset(_cluster(source.bootstrap_servers), topic) for topic in topics)


def _topics_written(target: TopicTarget, topics: tuple[str, ...]) -> tuple[LineageDataset, ...]:
    namespace = _cluster(target.bootstrap_servers)
    return tuple(LineageDataset(namespace, target.name_of(topic)) for topic in topics)


def _cluster(bootstrap_servers: str) -> str:
    """By the first address, as OpenLineage's integration of Spark does."""
    return f"kafka://{bootstrap_servers.partition(',')[0].strip()}"


def _lake(place: TableLocation, table_format: str, fields: Fields) -> LineageDataset:
    """A path is a name in the namespace `file`; of a URI, the store is the namespace.

    A table of a catalog is in a folder of its own in the lake's.
    """
    folder = place.folder.rstrip("/")
    if table_format == ICEBERG:
        folder = "/".join([folder, *place.table.split(".")])
    path = local_path(folder)
    if path is not None:
        return LineageDataset("file", str(path.resolve()), fields)
    store, _, rest = folder.partition("://")
    bucket, _, name = rest.partition("/")
    return LineageDataset(f"{store}://{bucket}", name.rstrip("/") or "/", fields)


def _last_part(folder: str) -> str:
    return folder.rstrip("/").rpartition("/")[2] or "archive"


def _archive_fields(spark: SparkSession, settings: ArchiveSettings) -> Fields:
    from ..decoding.values import decode_values

    values = settings.values
    if values is None:
        return _fields_of(spark, SCHEMA)
    empty = spark.createDataFrame([], SCHEMA)
    frame = decode_values(empty, values.registry, values.read_as)
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def _fields_of(spark: SparkSession, ddl: str) -> Fields:
    from pyspark.sql.types import StructType

    struct: Any = StructType.fromDDL(ddl)
    return {field.name: field.dataType.simpleString() for field in struct.fields}


# --- Events ------------------------------------------------------------------------------------


class Lineage:
    """Tells OpenLineage of runs.

    Args:
        client: OpenLineage's own; None: nobody is told.
        warn: is called with a sentence, once, where events cannot be sent.
    """

    def __init__(self, client: OpenLineageClient | None, warn: Warn) -> None:
        self._client = client
        self._warn = warn
        self._has_warned = False

    @contextmanager
    def run(self, job: Callable[[], LineageJob], engine: str) -> Iterator[LineageRun]:
        """Send the events of a run: START, and COMPLETE, FAIL or ABORT at its end.

        Args:
            job: makes the job; where that fails, so will the pipeline, and nothing is sent.
            engine: the version of Spark.
        """
        run = LineageRun()
        made = None if self._client is None else self._made(job)
        if self._client is None or made is None:
            yield run
            return
        run_id = str(uuid.uuid4())
        events: SimpleQueue[RunEvent | None] = SimpleQueue()
        sender = threading.Thread(target=self._send, args=(self._client, events), daemon=True)
        sender.start()

        def tell(state: str, error: BaseException | None = None) -> None:
            try:
                events.put(_event(state, run_id, run, made, engine, error))
            except Exception as failure:
                self._complain(f"an event of OpenLineage could not be made: {failure}")

        tell("START")
        try:
            yield run
        except BaseException as error:
            tell("FAIL" if isinstance(error, Exception) else "ABORT", error)
            raise
        else:
            tell("COMPLETE")
        finally:
            events.put(None)
            sender.join(SEND_WAIT_S)
            if sender.is_alive():
                self._complain(f"OpenLineage did not take the run's events in {SEND_WAIT_S:g} s")

    def _made(self, job: Callable[[], LineageJob]) -> LineageJob | None:
        try:
            return job()
        except Exception as error:
            self._complain(f"the run is not told to OpenLineage: {error}")
            return None

    def _send(self, client: OpenLineageClient, events: SimpleQueue[RunEvent | None]) -> None:
        while (event := events.get()) is not None:
            try:
                client.emit(event)
            except Exception as error:
                reason = str(error).partition("\n")[0]
                self._complain(f"an event could not be sent to OpenLineage: {reason}")

    def _complain(self, sentence: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(sentence)


def lineage_to(place: str | None, warn: Warn) -> Lineage:
    """What tells OpenLineage of runs, or nobody, where that is not configured.

    Args:
        place: a file `openlineage.yml`, or the URL of an endpoint. None: what the environment says
            (`OPENLINEAGE_CONFIG`, `OPENLINEAGE_URL`, `OPENLINEAGE__TRANSPORT__...`), if it does.
        warn: is called with a sentence where something is wrong that is no reason to stop.

    Raises:
        SparkConnectorError: the package is missing, or the place will not do, and it was given.
    """
    variables = [each for each in os.environ if each in _VARIABLES or each.startswith(_PREFIX)]
    if place is None and not variables:
        return Lineage(None, warn)
    try:
        return Lineage(_client(place), warn)
    except Exception as error:
        reason = str(error).partition("\n")[0]
        sentence = f"OpenLineage cannot be configured: {reason}"
    if place is not None:
        raise SparkConnectorError(sentence)
    warn(sentence)
    return Lineage(None, warn)


_VARIABLES = ("OPENLINEAGE_CONFIG", "OPENLINEAGE_URL")
_PREFIX = "OPENLINEAGE__TRANSPORT"


def _client(place: str | None) -> OpenLineageClient:
    if find_spec("openlineage") is None:
        raise SparkConnectorError("its client is missing; pip install 'odradek[lineage]'")
    from openlineage.client import OpenLineageClient

    if place is None:
        named = os.environ.get("OPENLINEAGE_CONFIG")
        # The client itself would say nothing, and print events to the console.
        if named is not None and not Path(named).is_file():
            raise SparkConnectorError(f"OPENLINEAGE_CONFIG names {named}, which is no file")
        return OpenLineageClient()
    if "://" in place:
        return OpenLineageClient(config={"transport": {"type": "http", "url": place}})
    import yaml

    try:
        config = yaml.safe_load(Path(place).read_text(encoding="utf-8"))
    except OSError as error:
        raise SparkConnectorError(f"{place}: {error.strerror}") from None
    if not (isinstance(config, dict) and isinstance(config.get("transport"), dict)):
        raise SparkConnectorError(f"{place} has no transport")
    return OpenLineageClient(config=config)


def _event(
    state: str,
    run_id: str,
    run: LineageRun,
    job: LineageJob,
    engine: str,
    error: BaseException | None,
) -> RunEvent:
    from openlineage.client import event_v2, facet_v2

    of_run: dict[str, Any] = {
        "processing_engine": facet_v2.processing_engine_run.ProcessingEngineRunFacet(
            version=engine, name="spark", producer=PRODUCER
        )
    }
    if error is not None:
        message = str(error).partition("\n")[0] or type(error).__name__
        of_run["errorMessage"] = facet_v2.error_message_run.ErrorMessageRunFacet(
            message=message, programmingLanguage="PYTHON", producer=PRODUCER
        )
    kind = facet_v2.job_type_job.JobTypeJobFacet(
        processingType="STREAMING" if job.is_streaming else "BATCH",
        integration="SPARK",
        jobType="JOB",
        producer=PRODUCER,
    )
    return event_v2.RunEvent(
        eventType=event_v2.RunState(state),
        eventTime=datetime.now(UTC).isoformat(),
        run=event_v2.Run(runId=run_id, facets=of_run),
        job=event_v2.Job(
            namespace=os.environ.get("OPENLINEAGE_NAMESPACE", NAMESPACE),
            name=job.name,
            facets={"jobType": kind},
        ),
        inputs=[_input(each, run) for each in job.inputs],
        outputs=[_output(each, run, job) for each in job.outputs],
        producer=PRODUCER,
    )


def _schema(dataset: LineageDataset) -> dict[str, Any]:
    from openlineage.client.facet_v2 import schema_dataset

    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=name, type=kind, ordinal_position=place)
        for place, (name, kind) in enumerate(dataset.fields.items(), 1)
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields, producer=PRODUCER)}


def _output(dataset: LineageDataset, run: LineageRun, job: LineageJob) -> OutputDataset:
    from openlineage.client import event_v2, facet_v2

    facets: dict[str, Any] = {}
    # Of several topics nobody has counted which got how many.
    if run.rows is not None and len(job.outputs) == 1:
        written = facet_v2.output_statistics_output_dataset
        facets["outputStatistics"] = written.OutputStatisticsOutputDatasetFacet(
            rowCount=run.rows, producer=PRODUCER
        )
    return event_v2.OutputDataset(
        dataset.namespace, dataset.name, facets=_schema(dataset), outputFacets=facets
    )


def _input(dataset: LineageDataset, run: LineageRun) -> InputDataset:
    from openlineage.client import event_v2

    facets = {} if run.report is None else _quality(run.report, dataset.name)
    return event_v2.InputDataset(
        dataset.namespace, dataset.name, facets=_schema(dataset), inputFacets=facets
    )


def _quality(report: AuditReport, topic: str) -> dict[str, Any]:
    """What an audit has counted of a topic, and whether it is as expected."""
    from openlineage.client.facet_v2 import data_quality_assertions_dataset as tests
    from openlineage.client.facet_v2 import data_quality_metrics_input_dataset as metrics

    partitions = [each for each in report.partitions if each.topic == topic]
    nulls = {
        "key": sum(each.null_keys for each in partitions),
        "value": sum(each.tombstones for each in partitions),
    }
    assertions = [
        tests.Assertion(
            assertion=each.kind,
            success=not each.has_failed,
            column=", ".join(each.columns) or None,
            severity=_SEVERITIES[each.severity],
            name=each.expectation,
            description=each.sentence,
            actual=None if each.observed is None else f"{each.observed:g}",
        )
        for each in report.results
        if each.topic == topic
    ]
    assertions += [
        tests.Assertion(
            assertion=fault.kind, success=False, severity="error", description=fault.sentence
        )
        for fault in report.faults
        if fault.topic == topic
    ]
    return {
        "dataQualityMetrics": metrics.DataQualityMetricsInputDatasetFacet(
            rowCount=sum(each.records for each in partitions),
            bytes=sum(each.bytes for each in partitions),
            columnMetrics={
                name: metrics.ColumnMetrics(nullCount=count) for name, count in nulls.items()
            },
            producer=PRODUCER,
        ),
        "dataQualityAssertions": tests.DataQualityAssertionsDatasetFacet(
            assertions=assertions, producer=PRODUCER
        ),
    }


_SEVERITIES = {"warning": "warn", "error": "error", "critical": "error"}
"""OpenLineage knows two."""

"""How far a pipeline is: records, how many a second, how many are left, and for how long."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ..errors import SparkConnectorError
from ..stream_lag import offsets_behind_latest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.25
STREAM_POLL_S = 1
_PYTHON_ERROR = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Failure)\w*: .+$", re.MULTILINE)
ResultT = TypeVar("ResultT")


class PipelineProgress(NamedTuple):
    """A moment of a pipeline."""

    step: str
    rows: int
    """Records so far, in this run."""
    rate: float
    """Records a second, since the step began."""
    lag: int | None
    """Offsets or records that are yet to come; None while that is not known."""

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far; None while nothing can be said."""
        if self.lag is None or (self.lag and not self.rate):
            return None
        return self.lag / self.rate if self.lag else 0.0


OnProgress = Callable[[PipelineProgress], None]


def no_progress(progress: PipelineProgress) -> None:
    """Tells nobody."""


class StepClock:
    """Makes `PipelineProgress` of counts.

    Args:
        step: what is being done, as a person reads it.
        on_progress: is called with the progress.
    """

    def __init__(self, step: str, on_progress: OnProgress) -> None:
        self._step = step
        self._tell = on_progress
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the step began."""
        return time.monotonic() - self._started

    def tell(self, rows: int, lag: int | None) -> None:
        """So many are done, so many are left."""
        self._tell(PipelineProgress(self._step, rows, rows / max(self.seconds, 1e-3), lag))


class StreamTotals(NamedTuple):
    """What a query has done in this run."""

    rows: int
    batches: int


def follow_stream(query: StreamingQuery, clock: StepClock, *, stops: bool = False) -> StreamTotals:
    """Wait until a query has ended, telling its progress.

    Args:
        query: it runs.
        clock: is updated with the progress.
        stops: whether to stop it once it has done all there is, since it does not end by itself.

    Raises:
        SparkConnectorError: it failed; the text is its first line.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import StreamingQueryException

    rows: dict[int, int] = {}
    lag: int | None = None
    if stops:
        threading.Thread(target=_stop_when_done, args=(query,), daemon=True).start()
    try:
        while True:
            is_active = query.isActive
            for progress in query.recentProgress:
                source = progress["sources"][0]
                rows[progress["batchId"]] = source["numInputRows"]
                behind = offsets_behind_latest(source)
                lag = None if behind is None else behind.total
            clock.tell(sum(rows.values()), lag)
            if not is_active:
                break
            query.awaitTermination(STREAM_POLL_S)
        query.awaitTermination()
    except StreamingQueryException as error:
        raise SparkConnectorError(f"the query failed: {first_line(error)}") from error
    except Py4JError as error:
        raise SparkConnectorError("Spark ended before the query did") from error
    except KeyboardInterrupt:
        query.stop()
        raise
    return StreamTotals(sum(rows.values()), sum(1 for count in rows.values() if count))


def _stop_when_done(query: StreamingQuery) -> None:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # Whoever follows the query meets the same failure, and tells of it.
    with suppress(PySparkException, Py4JError, OSError):
        query.processAllAvailable()
        query.stop()


def first_line(error: BaseException) -> str:
    """What an error of Spark's says, without its traces; ours, wherever it stands in it."""
    text = str(error)
    own = f"{SparkConnectorError.__name__}: "
    if own in text:
        return text.rsplit(own, 1)[1].partition("\n")[0].strip()
    # A failure in Python ends its trace with the error; others begin with it.
    raised = _PYTHON_ERROR.findall(text) if "Traceback (most recent call last)" in text else []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return raised[-1] if raised else (lines or [type(error).__name__])[0]


def with_jobs_watched(
    spark: SparkSession, work: Callable[[], ResultT], rows: int, clock: StepClock
) -> ResultT:
    """The result of `work`, which runs Spark jobs on `rows` records, telling how far it is.

    How far is the share of the tasks that are done: Spark tells no more while a task runs.

    Raises:
        SparkConnectorError: a job failed; the text is its first line.
    """
    from pyspark.errors import PySparkException

    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, rows, clock, done), daemon=True)
    clock.tell(0, rows)
    watcher.start()
    try:
        result = work()
    except PySparkException as error:
        raise SparkConnectorError(f"Spark failed: {first_line(error)}") from error
    finally:
        done.set()
        watcher.join()
    clock.tell(rows, 0)
    return result


def _watch(spark: SparkSession, rows: int, clock: StepClock, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    most = 0
    while not done.wait(POLL_S):
        finished = total = 0
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None:
                finished += info.numCompletedTasks
                total += info.numTasks
        if total:
            most = max(most, rows * finished // total)
            clock.tell(most, rows - most)

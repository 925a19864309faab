"""Streaming queries whose batches a test sees one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from odradek.testing.waiting import wait_until

from .spark_rows import Row, by_place, rows_of

QUERY_SECONDS_MAX = 200.0
AS_SOON_AS_POSSIBLE = {"processingTime": "0 seconds"}
AVAILABLE_NOW = {"availableNow": True}


class Stream:
    """A query of one of the sources, with a checkpoint; a context manager that stops it.

    Args:
        spark: the session.
        source: `kafka` or `odradek`.
        options: of the source.
        folder: for the checkpoint. A stream over the folder of another goes on where it stopped.
        trigger: what `trigger` is given.
        before_reading: called with a batch's number when its offsets are settled, and none of
            its records are read.

    Attributes:
        batches: the rows of each batch by its number.
        tasks: how many tasks read each.
    """

    def __init__(
        self,
        spark: Any,
        source: str,
        options: Mapping[str, str],
        folder: Path,
        trigger: Mapping[str, Any] = AS_SOON_AS_POSSIBLE,
        before_reading: Callable[[int], None] = lambda number: None,
    ) -> None:
        self.source = source
        self.batches: dict[int, list[Row]] = {}
        self.tasks: dict[int, int] = {}
        self._before_reading = before_reading
        reader = spark.readStream.format(source).options(**options)
        writer = reader.load().writeStream.foreachBatch(self._take)
        writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{source}"))
        self.query = writer.trigger(**trigger).start()

    def _take(self, frame: Any, number: int) -> None:
        self._before_reading(number)
        self.tasks[number] = frame.rdd.getNumPartitions()
        self.batches[number] = rows_of(frame)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()

    @property
    def rows(self) -> list[Row]:
        """Those of all batches, ordered by their places; one that came twice is there twice."""
        return by_place(row for rows in list(self.batches.values()) for row in rows)

    @property
    def sizes(self) -> list[int]:
        """How many rows each batch had, those without any left out."""
        return [len(rows) for _, rows in sorted(self.batches.items()) if rows]

    def finish(self) -> list[Row]:
        """Wait until a query that ends by itself has ended; gives its rows."""
        assert self.query.awaitTermination(QUERY_SECONDS_MAX), f"{self.source} does not end"
        return self.rows

    def catch_up(self) -> None:
        """Wait until a trigger has found nothing to do."""
        self.query.processAllAvailable()

    def wait_for(self, is_so: Callable[[Stream], bool], what: str) -> None:
        """Wait until something holds of the stream; fails at once where the query has failed."""

        def holds() -> bool:
            if is_so(self):
                return True
            if self.query.exception() is not None:
                raise AssertionError(f"{self.source} has failed") from self.query.exception()
            return False

        wait_until(holds, QUERY_SECONDS_MAX, f"{self.source}: {what} has not come to be")

    def wait_for_failure(self) -> str:
        """Wait until the query has failed; gives what it says."""
        wait_until(
            lambda: not self.query.isActive, QUERY_SECONDS_MAX, f"{self.source} has not failed"
        )
        failure = self.query.exception()
        assert failure is not None, f"{self.source} has ended without a failure"
        return str(failure)

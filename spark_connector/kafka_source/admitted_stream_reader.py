"""The stream reader for Spark 4.2 and later, which asks with a start and a limit.

Importing this fails where Spark has neither; see `source.stream_reader`.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from .cluster import Offsets
from .stream_offsets import from_json, to_json
from .stream_reader import Json, KafkaStreamReader


class AdmittedStreamReader(KafkaStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]  # Spark's class is not typed
    """Batches of the size that was set, under AvailableNow, too."""

    _target: Offsets | None = None
    _latest: Offsets | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        """What the options say of a batch's size."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """What comes from now on is left for the next run."""
        self._target = self.plan.latest({})

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:  # type: ignore[override]  # as Spark 4.2 calls it
        """Where the batch that begins at `start` ends."""
        position = from_json(start)
        target = self._target
        self._latest = self.plan.latest(position) if target is None else target
        if self._options.stop_at_latest:
            self._target = target = self._latest
        if isinstance(limit, ReadAllAvailable):
            return to_json(self._latest)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        if target is not None and rows is None:
            return to_json(self._latest)  # waiting for more would be forever
        return to_json(self.plan.batch_end(position, self._latest, rows))

    def reportLatestOffset(self) -> Any:
        """For a query's progress: where the partitions end."""
        return None if self._latest is None else to_json(self._latest)

"""Reading log folders: planned by the driver, read by the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ..kafka_source.filters import PushedFilters
from ..worker_imports import forget_zip_importers
from .options import LogOptions
from .slices import GROUP_BYTES, LogSlice, SliceGroup, grouped

if TYPE_CHECKING:
    import pyarrow as pa


class LogReader(DataSourceReader):
    """Reads what is in the files when the query is planned.

    Args:
        options: of the source.
        columns: the names of the requested columns, in order.
    """

    def __init__(self, options: LogOptions, columns: Iterable[str]) -> None:
        self._options = options
        self._columns = tuple(columns)
        self._filters: Sequence[Any] = ()

    def partitions(self) -> list[InputPartition]:
        """A slice of a segment for each task, or several small ones."""
        from .planning import planned_slices

        forget_zip_importers()
        filters = PushedFilters()
        filters.take(self._filters)
        slices = planned_slices(self._options, filters)
        return list(grouped(slices, min(GROUP_BYTES, self._options.slice_bytes)))

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """Runs in an executor; None stands for a plan without any slice."""
        forget_zip_importers()
        if isinstance(partition, SliceGroup):
            for each in partition.slices:
                yield from self._rows_of(each)

    def _rows_of(self, slice_: LogSlice) -> Iterator[pa.RecordBatch]:
        if self._options.table == "indexes":
            from .indexes_table import index_rows

            yield from index_rows(slice_, self._options, self._columns)
            return
        from .batch_walk import mapped
        from .batches_table import batch_rows
        from .records_table import record_rows

        rows = record_rows if self._options.table == "records" else batch_rows
        with mapped(slice_.path) as data:
            yield from rows(data, slice_, self._options, self._columns)


class FilteredLogReader(LogReader):
    """Leaves out what Spark's filters leave out; a class of its own, since Spark looks for it."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:
        """Spark 4.1 and later: the filters that Spark still has to apply."""
        self._filters = filters
        return PushedFilters().take(filters)

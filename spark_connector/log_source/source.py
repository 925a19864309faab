"""The data source as Spark knows it: `odradek-log`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader


class LogDataSource(DataSource):
    """Data folders of brokers, odradek's or Kafka's, or copies of them.

    Everything else is imported by what needs it: Spark imports this class to find out which
    sources there are.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "odradek-log"

    def schema(self) -> str:
        """The columns of the chosen table, or the chosen columns."""
        from ..kafka_source.columns import ddl_of
        from ..worker_imports import forget_zip_importers
        from .options import columns_of

        forget_zip_importers()
        return ddl_of(columns_of(self.options))

    def reader(self, schema: Any) -> DataSourceReader:
        """Of a batch; there is no stream of files."""
        from ..kafka_source.columns import require_columns
        from ..kafka_source.filters import pushes_filters
        from .options import log_options
        from .reader import FilteredLogReader, LogReader
        from .tables import TABLES

        options = log_options(self.options)
        # Only the table of records has the columns of offsets and times.
        is_filtered = pushes_filters(self.options) and options.table == "records"
        kind = FilteredLogReader if is_filtered else LogReader
        return kind(options, require_columns(schema, TABLES[options.table]))

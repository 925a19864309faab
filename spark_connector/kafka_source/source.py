"""The data source as Spark knows it: `odradek`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

    from .options import ReadOptions


class KafkaDataSource(DataSource):
    """Topics of any Kafka cluster.

    Everything else is imported by what needs it: Spark imports this class to find out which
    sources there are.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "odradek"

    def schema(self) -> str:
        """The columns of Spark's own source; a schema that the user gives may leave some out."""
        from ..worker_imports import forget_zip_importers
        from .columns import ddl_of

        forget_zip_importers()
        return ddl_of(self._columns())

    def reader(self, schema: Any) -> DataSourceReader:
        """Of a batch."""
        from .batch_reader import FilteredBatchReader, KafkaBatchReader
        from .columns import require_columns
        from .filters import pushes_filters
        from .options import read_options

        options = read_options(self.options, is_stream=False)
        kind = FilteredBatchReader if pushes_filters(self.options) else KafkaBatchReader
        return kind(options, require_columns(schema, self._known_columns()))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Of a stream."""
        from .columns import require_columns
        from .options import read_options

        options = read_options(self.options, is_stream=True)
        return stream_reader(options, require_columns(schema, self._known_columns()))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceWriter:
        """Of a batch."""
        from .writer import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        """Of a stream."""
        from .writer import stream_writer

        return stream_writer(self.options, schema)

    def _columns(self) -> dict[str, str]:
        from .columns import COLUMNS, HEADERS
        from .options import includes_headers

        return {**COLUMNS, **HEADERS} if includes_headers(self.options) else COLUMNS

    def _known_columns(self) -> dict[str, str]:
        from .columns import COLUMNS, HEADERS

        return {**COLUMNS, **HEADERS}


def stream_reader(options: ReadOptions, columns: Iterable[str]) -> DataSourceStreamReader:
    """The reader that the installed Spark can make most of."""
    try:
        from .admitted_stream_reader import AdmittedStreamReader
    except ImportError:
        from .stream_reader import KafkaStreamReader

        return KafkaStreamReader(options, columns)
    return AdmittedStreamReader(options, columns)

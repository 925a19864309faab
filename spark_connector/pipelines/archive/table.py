"""A table that records are appended to, exactly once: what Iceberg and Delta have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from .position import ArchivePosition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableState(NamedTuple):
    """A table as a batch finds it."""

    position: ArchivePosition | None
    """What the last commit of an archive said; None where none is there to say."""
    predecessor: str
    """Names that commit. Of two batches with the same predecessor only one is committed."""
    is_empty: bool
    """Whether nothing was ever committed."""


class ArchiveTable(Protocol):
    """A table in a lake."""

    @property
    def title(self) -> str:
        """As it is called in sentences."""

    def ensure(self, schema: str, partition_by: Sequence[str]) -> None:
        """Make it if it is not there.

        Args:
            schema: of a new table, in DDL.
            partition_by: of a new table; one that is there keeps its own.

        Raises:
            SparkConnectorError: it cannot be made.
        """

    def state(self) -> TableState:
        """What its last commits say.

        Raises:
            SparkConnectorError: it is gone, or a position cannot be read.
        """

    def append(
        self, frame: DataFrame, position: ArchivePosition, predecessor: str, gathers: bool
    ) -> int | None:
        """Commit records and the position behind them at once.

        Args:
            frame: the records.
            position: behind them.
            predecessor: of the state that the batch was planned by.
            gathers: whether each of its partitions gets one file only.

        Returns:
            How many records it has committed; None if another batch of the same predecessor was
            quicker, and nothing was.
        """

    def alter(self, change: str) -> None:
        """Change its columns.

        Args:
            change: what stands behind ALTER TABLE and its name.

        Raises:
            SparkConnectorError: it cannot be changed so.
        """

    def read(self) -> DataFrame:
        """Its records.

        Raises:
            SparkConnectorError: there is no such table.
        """

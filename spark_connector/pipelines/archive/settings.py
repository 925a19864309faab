"""What is archived, and where to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...decoding.values import ReadAs, Registry
from ...errors import SparkConnectorError
from ..record_fields import require_field
from ..topic_source import TopicSource

OFFSETS_PER_BATCH_MAX = 4_000_000

PARQUET = "parquet"
ICEBERG = "iceberg"
DELTA = "delta"
TABLE_FORMATS = (ICEBERG, DELTA)
FORMATS = (PARQUET, *TABLE_FORMATS)

NO_PROPERTIES: Mapping[str, str] = {}
DEFAULT_TABLE = "topics.records"


class TableLocation(NamedTuple):
    """Where a table is."""

    folder: str
    """The warehouse of the table's catalog: a path, or a URI that Spark knows, or the name that a
    REST catalog has for it. A table of Delta is the folder itself."""
    catalog: Mapping[str, str] = NO_PROPERTIES
    """Properties of Iceberg's catalog, such as `type` (hadoop, jdbc, rest, hive, ...) and `uri`.
    Without any it is of Hadoop's type: the folder and nothing else."""
    table: str = DEFAULT_TABLE
    """Namespace and name in the catalog."""


def require_no_catalog(location: TableLocation) -> None:
    """A location that is a folder and nothing else.

    Raises:
        SparkConnectorError: it is in a catalog.
    """
    if location.catalog or location.table != DEFAULT_TABLE:
        raise SparkConnectorError("only a table of Iceberg has a catalog and a name in it")


class ValueSettings(NamedTuple):
    """How values become columns beside their bytes: see `decode_values`."""

    registry: Registry | None
    read_as: ReadAs | Mapping[str, ReadAs]


class ArchiveSettings(NamedTuple):
    """What is archived, and where to."""

    source: TopicSource
    folder: str
    """Of the lake: a path, or a URI that Spark knows; of a table, see `TableLocation`."""
    table_format: str = PARQUET
    """One of `FORMATS`."""
    checkpoint: str | None = None
    """Of Parquet; by default a folder `_checkpoint` in `folder`. Tables keep their own."""
    continuous_every: str | None = None
    """None: archive what is there now, and end. Else go on, at this interval (`30 seconds`)."""
    offsets_per_batch_max: int = OFFSETS_PER_BATCH_MAX
    fail_on_data_loss: bool = True
    """Whether it is an error that the cluster has deleted what was not archived yet."""
    gathers_days: bool = False
    """Whether all of a batch's records of a topic and day go to one file. Else each partition's
    have one of their own, which is quicker, but with many days leaves many small files."""
    values: ValueSettings | None = None
    """None: values are kept as bytes only. Else the archive has the columns of `decode_values` as
    well; what does not decode is archived like all else, and can be replayed as dead letters."""
    catalog: Mapping[str, str] = NO_PROPERTIES
    """Of a table of Iceberg: see `TableLocation`."""
    table: str = DEFAULT_TABLE
    """Likewise."""
    partition_by: tuple[str, ...] = ()
    """What a new table is partitioned by: columns, or Iceberg's transforms of them, such as
    `days(timestamp)`. Without any, topic and date."""
    deduplicate_by: str | None = None
    """What tells records apart, such as `header:id` or `key`: of those of a topic that have the
    same only the first is archived, and all that have none."""
    deduplicate_within: str = "1 day"
    """How far apart, by their timestamps, records of different batches are duplicates."""

    @property
    def location(self) -> TableLocation:
        """Of the table."""
        return TableLocation(self.folder, self.catalog, self.table)

    def check(self) -> ArchiveSettings:
        """These settings.

        Raises:
            SparkConnectorError: they contradict each other.
        """
        if self.table_format not in FORMATS:
            raise SparkConnectorError(
                f"there is no table format {self.table_format!r}; it is one of {', '.join(FORMATS)}"
            )
        is_parquet = self.table_format == PARQUET
        if is_parquet and self.partition_by:
            raise SparkConnectorError(
                "an archive of Parquet is partitioned by topic and date; for other partitions"
                " archive to a table"
            )
        if is_parquet and self.deduplicate_by is not None:
            raise SparkConnectorError(
                "files of Parquet are not looked into for duplicates; archive to a table"
            )
        if self.deduplicate_by is not None:
            require_field(self.deduplicate_by)
        if self.table_format != ICEBERG:
            require_no_catalog(self.location)
        if not is_parquet and self.checkpoint is not None:
            raise SparkConnectorError(
                "a table keeps its position with its records, and needs no checkpoint; leave it out"
            )
        return self


class ArchiveResult(NamedTuple):
    """What a run did."""

    rows: int
    batches: int
    seconds: float
    removed_files: int
    """Files of an interrupted batch that were removed."""


class MaintainSettings(NamedTuple):
    """What is done to a table."""

    location: TableLocation
    target_bytes: int = 128 << 20
    """Of a data file."""
    files_min: int = 5
    """So many small files of a partition are put together."""
    keep_days: float = 5.0
    """How long snapshots (Delta's versions) can be read; the current one always can."""
    orphan_days: float = 3.0
    """How old files must be that no snapshot knows. Younger ones may belong to a running batch.
    Delta has one age for these and for old versions: the larger one."""
    only_plans: bool = False
    """Whether to say what would be done, and do nothing."""
    table_format: str = ICEBERG
    """`iceberg` or `delta`."""

    def check(self) -> MaintainSettings:
        """These settings.

        Raises:
            SparkConnectorError: they would remove what is still used, or make no sense.
        """
        if self.orphan_days < 1 or self.keep_days < 0:
            raise SparkConnectorError(
                "files without a snapshot must be left for a day at least: a running batch may"
                " have written them"
            )
        if self.table_format not in TABLE_FORMATS:
            raise SparkConnectorError(
                f"there are no tables of {self.table_format!r}; they are of"
                f" {' or '.join(TABLE_FORMATS)}"
            )
        if self.table_format != ICEBERG:
            require_no_catalog(self.location)
        return self


class MaintenanceStep(NamedTuple):
    """What became of a step, or would."""

    step: str
    outcome: str

"""Topics to a lake, each record once: files of Parquet, or a table of Iceberg or Delta."""

from .archive import archive_topics, read_archive
from .settings import (
    ArchiveResult,
    ArchiveSettings,
    MaintainSettings,
    MaintenanceStep,
    TableLocation,
    ValueSettings,
)

__all__ = [
    "ArchiveResult",
    "ArchiveSettings",
    "MaintainSettings",
    "MaintenanceStep",
    "TableLocation",
    "ValueSettings",
    "archive_topics",
    "read_archive",
]

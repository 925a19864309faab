"""A table kept in order: small files into large ones, and what is old removed.

Each step commits by itself, and the first one by groups of files. So a run that is killed has done
what it has done, and the next one does the rest. Archives may run at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..progress import OnProgress, StepClock, no_progress
from ..topic_source import pipeline_session
from .delta_maintenance import DeltaMaintenance
from .failures import failures_reported
from .iceberg_maintenance import IcebergMaintenance
from .settings import DELTA, MaintainSettings, MaintenanceStep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def maintain_table(
    spark: SparkSession, settings: MaintainSettings, on_progress: OnProgress = no_progress
) -> list[MaintenanceStep]:
    """Put a table's small files together, and remove snapshots and files that are too old.

    Raises:
        SparkConnectorError: there is no such table, or a step failed; those before it are done.
    """
    settings.check()
    session = pipeline_session(spark)
    run = (
        DeltaMaintenance(session, settings)
        if settings.table_format == DELTA
        else IcebergMaintenance(session, settings)
    )
    with failures_reported(run.table.title):
        return [
            MaintenanceStep(name, step(StepClock(name, on_progress)))
            for name, step in run.steps().items()
        ]

"""What DuckDB, which is no Spark, reads of the Parquet files that a table says it consists of.

Its own extensions for tables would have to be fetched; which files count is said by pyiceberg and
deltalake, which read a table's metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import duckdb
from deltalake import DeltaTable


class ArchivedRow(NamedTuple):
    """A record in a lake."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def delta_files(folder: Path) -> list[str]:
    """The data files of the newest version of a table of Delta."""
    return [unquote(uri).removeprefix("file://") for uri in DeltaTable(str(folder)).file_uris()]


def duckdb_rows(files: Sequence[str]) -> list[ArchivedRow]:
    """All records, by topic, partition and offset."""
    with duckdb.connect() as database:
        found: list[Any] = database.execute(
            """SELECT topic, partition, "offset", epoch_ms(timestamp), key, value
               FROM read_parquet($files, hive_partitioning=true, hive_types_autocast=false,
                                 union_by_name=true)
               ORDER BY topic, partition, "offset" """,
            {"files": list(files)},
        ).fetchall()
    return [ArchivedRow(*row) for row in found]

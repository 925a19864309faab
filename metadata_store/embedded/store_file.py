"""The SQLite file of an embedded store: opened, made ready, and changed in transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..errors import StoreUnreachable
from .node_table import SCHEMA_VERSION, NodeTable

ResultT = TypeVar("ResultT")


class StoreFile:
    """One connection to the file.

    Its verbs raise sqlite3.Error where SQLite does; `is_busy` says whether to try again.

    Args:
        path: where it is, or is to be made.

    Attributes:
        table: the tree in it, while it is open.
    """

    table: NodeTable

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def open(self) -> None:
        """Connect; the file is made if it is not there. Raises StoreUnreachable."""
        try:
            self._connection = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreUnreachable(str(self.path), str(error)) from error
        self._identity = None
        self.table = NodeTable(self._connection)

    def prepare(self) -> None:
        """Make the tables where there are none yet.

        Raises:
            StoreUnreachable: the file is of another format than this release's.
        """
        connection = self._connected()
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        (schema_version,) = connection.execute("PRAGMA user_version").fetchone()
        if schema_version == 0:

            def create_schema() -> None:
                if connection.execute("PRAGMA user_version").fetchone() == (0,):
                    self.table.create_schema()

            self.in_transaction(create_schema)
        elif schema_version != SCHEMA_VERSION:
            raise StoreUnreachable(
                str(self.path),
                f"written in format {schema_version}, this release reads {SCHEMA_VERSION}",
            )
        self._identity = _identity_of(self.path)

    def close(self) -> None:
        """Let go of the file; may be done twice."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def data_version(self) -> int:
        """Differs from what it was once another connection has changed the file."""
        (version,) = self._connected().execute("PRAGMA data_version").fetchone()
        return int(version)

    def in_transaction(self, work: Callable[[], ResultT]) -> ResultT:
        """Do all that `work` changes in the tables, or nothing.

        Raises:
            StoreUnreachable: the file is no longer the one that was opened.
        """
        connection = self._connected()
        if self._identity is not None and _identity_of(self.path) != self._identity:
            # SQLite would go on with a file that has lost its name, and all would be lost.
            raise StoreUnreachable(str(self.path), "the file was removed or replaced")
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return result

    def _connected(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection


def _identity_of(path: Path | str) -> tuple[int, int] | None:
    """Which file has the name, None if none has."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_busy(error: sqlite3.OperationalError) -> bool:
    """Whether another connection's lock is in the way; extended codes keep it in one byte."""
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

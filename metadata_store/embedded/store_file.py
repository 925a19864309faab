"""The SQLite file of an embedded store: opened, made ready, and changed in transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio

from ...runtime.offload import run_in_thread
from ...storage.io.files import Files, StorageFile
from ..errors import StoreUnreachable
from .node_table import SCHEMA_VERSION, NodeTable

ResultT = TypeVar("ResultT")

DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)

ADVICE = (
    "Put back a copy of it, or move it and the files beside it away: a broker that was alone then "
    "gets its topics back from its logs, without their settings."
)


class StoreFile:
    """One connection to the file.

    Its verbs raise sqlite3.Error where SQLite does; `is_busy` says whether to try again.

    Args:
        path: where it is, or is to be made.
        files: sync it.

    Attributes:
        table: the tree in it, while it is open.
    """

    table: NodeTable

    def __init__(self, path: Path | str, files: Files) -> None:
        self.path = path
        self._files = files
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._write_ahead_log: StorageFile | None = None
        self._commits = 0
        self._synced_commits = 0
        self._syncing = trio.Lock()

    def open(self) -> None:
        """Connect; the file is made if it is not there. Raises StoreUnreachable."""
        try:
            self._connection = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        except sqlite3.Error as error:
            raise StoreUnreachable(str(self.path), str(error)) from error
        self._identity = None
        self.table = NodeTable(self._connection)

    def prepare(self, is_held: Callable[[int], bool]) -> None:
        """Make the tables where there are none yet, or of the present format.

        Args:
            is_held: whether the holder of a session lives.

        Raises:
            StoreUnreachable: the file is damaged, or of a format that this release does not
                know, or a process of an earlier release uses it.
        """
        try:
            self._prepare(is_held)
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in DAMAGED:
                raise
            raise StoreUnreachable(str(self.path), f"it is damaged ({error}). {ADVICE}") from error

    def _prepare(self, is_held: Callable[[int], bool]) -> None:
        connection = self._connected()
        connection.execute("PRAGMA journal_mode = WAL")
        # A commit does not wait for the disk; `sync` does, where a change must outlive power.
        connection.execute("PRAGMA synchronous = NORMAL")
        if self._schema_version() != SCHEMA_VERSION:
            self.in_transaction(lambda: self._make_schema(is_held))
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            (*_, what) = str(verdict).splitlines()
            raise StoreUnreachable(str(self.path), f"it is damaged ({what}). {ADVICE}")
        self._identity = _identity_of(self.path)
        self._write_ahead_log = self._files.open(f"{self.path}-wal")
        self._files.sync_directory(os.path.dirname(os.path.abspath(self.path)))

    def _schema_version(self) -> int:
        (version,) = self._connected().execute("PRAGMA user_version").fetchone()
        return int(version)

    def _make_schema(self, is_held: Callable[[int], bool]) -> None:
        version = self._schema_version()
        if version == 0:
            self.table.create_schema()
        elif version == 1:
            ids = self._connected().execute("SELECT id FROM sessions").fetchall()
            if any(is_held(session_id) for (session_id,) in ids):
                raise StoreUnreachable(
                    str(self.path), "brokers of an earlier release use it: stop all of them first"
                )
            self.table.upgrade_schema()
        elif version != SCHEMA_VERSION:  # else another process was first
            raise StoreUnreachable(
                str(self.path), f"written in format {version}, this release reads {SCHEMA_VERSION}"
            )

    def close(self) -> None:
        """Let go of the file; may be done twice."""
        self._write_ahead_log = None
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
        self._commits += 1
        return result

    async def sync(self) -> None:
        """Wait until all that was committed so far outlives a crash of power.

        It is what SQLite's `synchronous = FULL` does in a commit: a sync of the write-ahead log.
        Here a thread does it, so that no disk holds the loop; one serves all who wait for it.

        Raises:
            StoreUnreachable: the disk refused.
        """
        commits = self._commits
        async with self._syncing:
            if self._synced_commits >= commits:
                return
            log, commits = self._write_ahead_log, self._commits
            if log is None:
                raise StoreUnreachable(str(self.path), "it was closed meanwhile")
            try:
                await run_in_thread(log.sync)
            except OSError as error:
                raise StoreUnreachable(str(self.path), f"it cannot be synced: {error}") from error
            self._synced_commits = commits

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

"""The tree of nodes as tables of one SQLite file, read and written without waiting.

A path is kept as parent and name, so the children of a node are one range of the primary
key. Everything here runs inside the caller's transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ..errors import BadVersion, NoChildrenForEphemerals, NodeExists, NoNode, NotEmpty
from ..store import (
    ANY_VERSION,
    SEQUENCE_DIGITS,
    Change,
    Check,
    Create,
    Delete,
    Operation,
    Result,
    SetData,
    StoredNode,
    WatchEvent,
)
from .session_renewals import SessionRow

SCHEMA_VERSION = 2

SCHEMA = """
CREATE TABLE nodes (
    parent TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    version INTEGER NOT NULL,
    creation_id INTEGER NOT NULL,
    child_version INTEGER NOT NULL,
    children_created INTEGER NOT NULL,
    session INTEGER,
    PRIMARY KEY (parent, name)
) WITHOUT ROWID;
CREATE INDEX ephemeral_nodes ON nodes (session) WHERE session IS NOT NULL;
CREATE TABLE changes (last_id INTEGER NOT NULL);
INSERT INTO changes VALUES (0);
INSERT INTO nodes VALUES ('', '/', x'', 0, 0, 0, 0, NULL);
"""

SESSIONS_SCHEMA = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    timeout_ms INTEGER NOT NULL,
    renewals INTEGER NOT NULL
);
"""

NodeStamp = tuple[int, int, int]
"""Creation id, version and child version: differs after any change that a watch reports.

Where there is no node: `ABSENT`, the parent's creation id, and how many children it has had. So
a node that came and went between two looks is not missed; that of a sibling may look the same.
"""

ABSENT = -1

Paths = set[str]
"""The paths whose stamps a change has touched."""


def is_durable(operation: Operation) -> bool:
    """Whether what it changes must outlive a crash of power.

    That is all but what ends with a session, and what is made again where it is missing.
    """
    if isinstance(operation, Create):
        return not operation.ephemeral and not operation.unsynced
    return not isinstance(operation, Check)


def split_path(path: str) -> tuple[str, str]:
    """Parent and name of an absolute path.

    Raises:
        ValueError: the path is relative, ends in a slash or has an empty name in it.
    """
    if path == "/":
        return "", "/"
    parent, slash, name = path.rpartition("/")
    if not slash or not name or not path.startswith("/") or "//" in path or "\0" in path:
        raise ValueError(f"{path!r} is not an absolute path of a node")
    return parent or "/", name


class NodeTable:
    """Reads and writes nodes over one connection.

    Args:
        connection: opened with `isolation_level=None`: transactions are the caller's.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def create_schema(self) -> None:
        """Make the tables of an empty file."""
        for statement in SCHEMA.split(";\n"):
            if statement.strip():
                self._connection.execute(statement)
        self._create_sessions()

    def upgrade_schema(self) -> None:
        """Make format 1 format 2: its sessions, whose leases went by wall time, have ended."""
        for (session_id,) in self._connection.execute("SELECT id FROM sessions").fetchall():
            self.end_session(session_id)
        self._connection.execute("DROP TABLE sessions")
        self._create_sessions()

    def _create_sessions(self) -> None:
        self._connection.execute(SESSIONS_SCHEMA)
        self._connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def next_change_id(self) -> int:
        """A number larger than all before it, for a creation or a session."""
        row = self._connection.execute(
            "UPDATE changes SET last_id = last_id + 1 RETURNING last_id"
        ).fetchone()
        return int(row[0])

    # -- reading --------------------------------------------------------------------

    def get(self, path: str) -> StoredNode | None:
        """The node at `path`, if there is one."""
        row = self._connection.execute(
            "SELECT data, version, creation_id, child_version FROM nodes"
            " WHERE parent = ? AND name = ?",
            split_path(path),
        ).fetchone()
        return None if row is None else StoredNode(*row)

    def stamp(self, path: str) -> NodeStamp | None:
        """What changes whenever the node or the list of its children does."""
        parent, name = split_path(path)
        row: NodeStamp | None = self._connection.execute(
            "SELECT creation_id, version, child_version FROM nodes WHERE parent = ? AND name = ?"
            " UNION ALL"
            " SELECT ?, creation_id, children_created FROM nodes WHERE parent = ? AND name = ?"
            " LIMIT 1",
            (parent, name, ABSENT, *(split_path(parent) if parent else ("", ""))),
        ).fetchone()
        return row

    def children(self, path: str) -> list[str] | None:
        """The sorted names of the node's children; None where there is no node."""
        rows = self._connection.execute(
            "SELECT name FROM nodes WHERE parent = ? ORDER BY name", (path,)
        ).fetchall()
        if not rows and self.get(path) is None:
            return None
        return [name for (name,) in rows]

    # -- writing --------------------------------------------------------------------

    def apply(self, operations: Iterable[Operation], session_id: int) -> tuple[list[Result], Paths]:
        """Do the operations in order.

        Returns:
            The result of each, and the paths whose stamps have changed.

        Raises:
            MetadataStoreError: an operation cannot be done; the caller rolls back.
        """
        results: list[Result] = []
        touched: Paths = set()
        creation_id = 0
        for operation in operations:
            if type(operation) is Create:
                creation_id = creation_id or self.next_change_id()
                results.append(self._create(operation, creation_id, session_id, touched))
            elif type(operation) is SetData:
                results.append(self._set(operation))
                touched.add(operation.path)
            elif type(operation) is Delete:
                self._delete(operation, touched)
                results.append(None)
            else:
                assert type(operation) is Check
                self._expect(operation.path, operation.expected_version)
                results.append(None)
        return results, touched

    def _create(self, operation: Create, creation_id: int, session_id: int, touched: Paths) -> str:
        parent, name = split_path(operation.path)
        row = self._connection.execute(
            "UPDATE nodes SET child_version = child_version + 1,"
            " children_created = children_created + 1"
            " WHERE parent = ? AND name = ? RETURNING children_created, session",
            split_path(parent) if parent else ("", ""),
        ).fetchone()
        if row is None:
            if operation.path == "/":
                raise NodeExists("/")
            raise NoNode(parent, "the parent of the node to create")
        children_created, parent_session = row
        if parent_session is not None:
            raise NoChildrenForEphemerals(operation.path)
        path = operation.path
        if operation.sequential:
            suffix = f"{children_created - 1:0{SEQUENCE_DIGITS}d}"
            name += suffix
            path += suffix
        try:
            self._connection.execute(
                "INSERT INTO nodes VALUES (?, ?, ?, 0, ?, 0, 0, ?)",
                (
                    parent,
                    name,
                    operation.data,
                    creation_id,
                    session_id if operation.ephemeral else None,
                ),
            )
        except sqlite3.IntegrityError:
            raise NodeExists(path) from None
        touched.add(path)
        touched.add(parent)
        return path

    def _set(self, operation: SetData) -> int:
        version = self._expect(operation.path, operation.expected_version) + 1
        self._connection.execute(
            "UPDATE nodes SET data = ?, version = ? WHERE parent = ? AND name = ?",
            (operation.data, version, *split_path(operation.path)),
        )
        return version

    def _delete(self, operation: Delete, touched: Paths) -> None:
        path = operation.path
        self._expect(path, operation.expected_version)
        has_children = self._connection.execute(
            "SELECT 1 FROM nodes WHERE parent = ? LIMIT 1", (path,)
        ).fetchone()
        if has_children or path == "/":
            raise NotEmpty(path)
        self._remove(*split_path(path), touched)

    def _remove(self, parent: str, name: str, touched: Paths) -> None:
        self._connection.execute("DELETE FROM nodes WHERE parent = ? AND name = ?", (parent, name))
        self._connection.execute(
            "UPDATE nodes SET child_version = child_version + 1 WHERE parent = ? AND name = ?",
            split_path(parent),
        )
        touched.add(f"/{name}" if parent == "/" else f"{parent}/{name}")
        touched.add(parent)

    def _expect(self, path: str, expected_version: int) -> int:
        row = self._connection.execute(
            "SELECT version FROM nodes WHERE parent = ? AND name = ?", split_path(path)
        ).fetchone()
        if row is None:
            raise NoNode(path)
        version = int(row[0])
        if expected_version not in (ANY_VERSION, version):
            raise BadVersion(path, f"expected {expected_version}, it is {version}")
        return version

    # -- sessions -------------------------------------------------------------------

    def begin_session(self, timeout_ms: int) -> int:
        """Begin a session; returns its id."""
        session_id = self.next_change_id()
        self._connection.execute("INSERT INTO sessions VALUES (?, ?, 0)", (session_id, timeout_ms))
        return session_id

    def sessions(self) -> dict[int, SessionRow]:
        """All sessions by id."""
        rows = self._connection.execute("SELECT id, timeout_ms, renewals FROM sessions").fetchall()
        return {session_id: SessionRow(*row) for session_id, *row in rows}

    def has_session(self, session_id: int) -> bool:
        """Whether the session is still there, renewed in time or not."""
        return (
            self._connection.execute(
                "SELECT 1 FROM sessions WHERE id = ?", (session_id,)
            ).fetchone()
            is not None
        )

    def renew_session(self, session_id: int) -> bool:
        """Let others see that the holder runs; False where the session has ended."""
        cursor = self._connection.execute(
            "UPDATE sessions SET renewals = renewals + 1 WHERE id = ?", (session_id,)
        )
        return cursor.rowcount == 1

    def end_session(self, session_id: int) -> Paths:
        """Remove a session and its ephemeral nodes; returns the paths touched."""
        touched: Paths = set()
        for parent, name in self._connection.execute(
            "SELECT parent, name FROM nodes WHERE session = ?", (session_id,)
        ).fetchall():
            self._remove(parent, name, touched)
        self._connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        return touched


def event_between(
    path: str, before: NodeStamp | None, after: NodeStamp | None
) -> WatchEvent | None:
    """What a watcher gets when a node's stamp went from one to the other."""
    if before == after:
        return None
    if before is not None and after is not None and before[:2] == after[:2]:
        return WatchEvent(path, Change.NODE if after[0] == ABSENT else Change.CHILDREN)
    return WatchEvent(path, Change.NODE)

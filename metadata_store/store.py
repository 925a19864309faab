"""What every metadata store can do: the verbs, and what goes in and out of them.

Two implementations pass one contract suite: one SQLite file, and ZooKeeper. So the verbs
promise what both can keep, and all are async, though a file needs to wait for little.
"""

from __future__ import annotations

import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from ..common.named_tuple import NamedTuple
from .errors import NodeExists, NoNode, SessionExpired

logger = logging.getLogger(__name__)

ANY_VERSION = -1
"""The expected version that every node has."""

SEQUENCE_DIGITS = 10
"""A sequential node's name ends in this many digits, as ZooKeeper's."""


class StoredNode(NamedTuple):
    """A node as it was read.

    Attributes:
        version: 0 when created, one more with each `set`.
        creation_id: grows with every creation in the store, so a node that was deleted and
            made anew is a different one (ZooKeeper's czxid; Kafka's broker epoch).
        child_version: how often a child was created or deleted (ZooKeeper's cversion).
    """

    data: bytes
    version: int
    creation_id: int
    child_version: int


class Create(NamedTuple):
    """Make a node under an existing parent; the result is its path.

    An `ephemeral` node goes with the session that made it. A `sequential` one gets ten
    digits added to its name, growing with each under its parent. An `unsynced` one is made again
    by whoever misses it, and so nobody waits for the disk: a crash of power may take it, but
    not if a later change has outlived that.
    """

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False
    unsynced: bool = False


class SetData(NamedTuple):
    """Replace a node's data; the result is its new version."""

    path: str
    data: bytes
    expected_version: int = ANY_VERSION


class Delete(NamedTuple):
    """Remove a node that has no children; the result is None."""

    path: str
    expected_version: int = ANY_VERSION


class Check(NamedTuple):
    """Go on only if the node is there in this version; the result is None."""

    path: str
    expected_version: int = ANY_VERSION


Operation = Create | SetData | Delete | Check
Result = str | int | None


class Change(enum.Enum):
    """What a watch saw."""

    NODE = "the node was created, set or deleted"
    CHILDREN = "a child was created or deleted"


class WatchEvent(NamedTuple):
    """One or several changes of a node; a read that follows sees them."""

    path: str
    change: Change


WatchCallback = Callable[[WatchEvent], None]


class Watch(Protocol):
    """A watch that was set; it stays until cancelled or until the session ends."""

    def cancel(self) -> None:
        """Never call the callback again; may be called twice."""


class SessionState(enum.Enum):
    """How a session stands. LOST may become CONNECTED again; the last two are final."""

    CONNECTED = "the store answers"
    LOST = "the store does not answer; the session may outlive that"
    EXPIRED = "the store ended the session; its ephemeral nodes are gone"
    CLOSED = "ended from this side"


SESSION_ENDED = (SessionState.EXPIRED, SessionState.CLOSED)
SESSION_TIMEOUT_MS = 18_000
"""Kafka's zookeeper.session.timeout.ms."""

SessionListener = Callable[[SessionState], None]


class MetadataStore(ABC):
    """A session on a tree of versioned nodes.

    The verbs that change one node are transactions of one operation, unless an implementation
    has a shorter way.

    Callbacks are plain functions, called from the loop; they may not wait. Paths are
    absolute, without a trailing slash.

    Every verb raises `SessionExpired` once the session is over and `StoreUnreachable` when
    the store cannot be reached.

    Attributes:
        session_id: names this session among all of the store's.
        session_state: how the session stands now.
        former_session_lasts_ms: how long the ephemeral nodes of a holder that crashed may
            still be there.
        opened_at: a creation id that the store had not given before `open`, and no later one; None
            of a store that does not tell.
    """

    def __init__(self) -> None:
        self.session_id = 0
        self.session_state = SessionState.CLOSED
        self.former_session_lasts_ms = 0
        self.opened_at: int | None = None
        self._listeners: list[SessionListener] = []

    @property
    def location(self) -> str:
        """Where the store is, for messages: a file, or servers."""
        return type(self).__name__

    def add_session_listener(self, listener: SessionListener) -> None:
        """Call `listener` with every new state of the session."""
        self._listeners.append(listener)

    def _change_state(self, state: SessionState) -> None:
        if state is not self.session_state:
            self.session_state = state
            for listener in list(self._listeners):
                try:
                    listener(state)
                except Exception:  # one listener's, which must not end the session's task
                    logger.exception("a listener to the session failed")

    def _give_up_session(self) -> None:
        """Another session is to begin: the one that there may be is over for its listeners.

        Its watches go with it, so they must hear that what they follow is to be watched anew.
        """
        if self.session_state not in SESSION_ENDED:
            self._change_state(SessionState.EXPIRED)

    def _require_session(self) -> None:
        """Raises SessionExpired once the session is over."""
        if self.session_state in SESSION_ENDED:
            raise SessionExpired(reason=self.session_state.value)

    @abstractmethod
    async def open(self) -> None:
        """Connect and begin a session. After one has expired, begins another."""

    @abstractmethod
    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone at once."""

    @abstractmethod
    async def run(self) -> None:
        """Keep the session alive and the watches fed, until it is closed or has expired."""

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Make a node and return its path.

        Raises:
            NodeExists: it is there already.
            NoNode: its parent is not.
            NoChildrenForEphemerals: its parent is ephemeral.
        """
        (created,) = await self.multi([Create(path, data, ephemeral, sequential)])
        assert isinstance(created, str)
        return created

    async def get(self, path: str) -> StoredNode:
        """Read a node.

        Raises:
            NoNode: there is none.
        """
        (node,) = await self.get_many([path])
        if node is None:
            raise NoNode(path)
        return node

    @abstractmethod
    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """Read many nodes, None where there is none. Not one snapshot: each by itself."""

    async def set(self, path: str, data: bytes, expected_version: int = ANY_VERSION) -> int:
        """Replace a node's data and return its new version.

        Raises:
            NoNode: there is none.
            BadVersion: it is not in the expected version.
        """
        (version,) = await self.multi([SetData(path, data, expected_version)])
        assert isinstance(version, int)
        return version

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        """Remove a node.

        Raises:
            NoNode: there is none.
            BadVersion: it is not in the expected version.
            NotEmpty: it has children.
        """
        await self.multi([Delete(path, expected_version)])

    @abstractmethod
    async def children(self, path: str) -> list[str]:
        """The names of a node's children, sorted.

        Raises:
            NoNode: there is no such node.
        """

    @abstractmethod
    async def watch(self, path: str, callback: WatchCallback) -> Watch:
        """Call back after each later change of a node, there or not, and of its children.

        Changes close together may come as one event, never as none. To miss nothing, set
        the watch first and read then.
        """

    @abstractmethod
    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations in order, or none.

        Raises:
            MetadataStoreError: that of the first operation that cannot be done.
        """


async def ensure_paths(store: MetadataStore, paths: Sequence[str]) -> None:
    """Make those of `paths` and of their parents that are not there, with no data."""
    needed: dict[str, None] = {}
    for path in paths:
        names = path.split("/")[1:]
        for depth in range(1, len(names) + 1):
            needed["/" + "/".join(names[:depth])] = None
    candidates = list(needed)
    found = await store.get_many(candidates)
    missing = [path for path, node in zip(candidates, found, strict=True) if node is None]
    if not missing:
        return
    try:
        await store.multi([Create(path, unsynced=True) for path in missing])
    except NodeExists:  # another broker starts at the same time: look again
        await ensure_paths(store, paths)

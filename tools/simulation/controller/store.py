"""A metadata store for simulations: one tree in memory, and verbs that wait for a scheduler.

Every verb stops once before it is done and goes on when the scheduler says so. In between
anything may happen: another broker's write, the end of the session. Nothing here is trio.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from ....common.sentinels import FOREVER_MS
from ....metadata_store.embedded.node_table import NodeTable, Paths
from ....metadata_store.embedded.watches import EmbeddedWatch, Watches
from ....metadata_store.errors import NoNode, SessionExpired, StoreUnreachable
from ....metadata_store.store import (
    MetadataStore,
    Operation,
    Result,
    SessionState,
    StoredNode,
    WatchCallback,
    WatchEvent,
)

ResultT = TypeVar("ResultT")


class Suspension:
    """Awaiting one hands control back to the scheduler."""

    def __await__(self) -> Generator[Suspension, None, None]:
        yield self


class SimulatedTree:
    """The tree that all sessions share.

    Args:
        tell_later: takes the calls of watches, to be made whenever the scheduler likes.
        on_change: called with the paths that a transaction touched, once it is done.
    """

    def __init__(
        self,
        tell_later: Callable[[Callable[[], None]], None],
        on_change: Callable[[Paths], None],
    ) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self.table = NodeTable(connection)
        self.table.create_schema()
        self._connection = connection
        self._tell_later = tell_later
        self._on_change = on_change
        self._watches = Watches(self.table.stamp)

    def change(self, work: Callable[[], tuple[ResultT, Paths]]) -> ResultT:
        """Do a transaction, and let watches see it."""
        self._connection.execute("BEGIN")
        try:
            result, touched = work()
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        self._watches.check(sorted(touched))
        self._on_change(touched)
        return result

    def watch(self, session: SimulatedSession, path: str, callback: WatchCallback) -> EmbeddedWatch:
        """Watch a path; the call comes later, unless the session has ended or it was cancelled."""

        def seen(event: WatchEvent) -> None:
            self._tell_later(lambda: tell(event))

        def tell(event: WatchEvent) -> None:
            if watch in session.watches:
                callback(event)

        watch = self._watches.add(path, seen)
        session.watches.append(watch)
        return watch


class SimulatedWatch:
    """A watch that stays until cancelled or until its session ends."""

    def __init__(self, session: SimulatedSession, watch: EmbeddedWatch) -> None:
        self._session = session
        self._watch = watch

    def cancel(self) -> None:
        """Call back no more; may be done twice."""
        self._watch.cancel()
        if self._watch in self._session.watches:
            self._session.watches.remove(self._watch)


class SimulatedSession(MetadataStore):
    """A session on the tree; satisfies `MetadataStore`.

    Attributes:
        loses_next: the next write is done, but its answer is lost.
    """

    def __init__(self, tree: SimulatedTree) -> None:
        super().__init__()
        self._tree = tree
        self.loses_next = False
        self.watches: list[EmbeddedWatch] = []

    def begin(self) -> None:
        """Begin a session, at once."""

        self.session_id = self._tree.change(
            lambda: (self._tree.table.begin_session(FOREVER_MS), set())
        )
        self.session_state = SessionState.CONNECTED

    def fall_silent(self) -> None:
        """Its holder died: it hears of nothing, and lasts until the store ends it."""
        while self.watches:
            self.watches.pop().cancel()

    def end(self, state: SessionState) -> None:
        """End it, at once: its ephemeral nodes are gone."""
        if self.session_state is SessionState.CONNECTED:
            self.fall_silent()
            self._tree.change(lambda: (None, self._tree.table.end_session(self.session_id)))
            self._change_state(state)

    async def open(self) -> None:
        """Begin a session."""
        await Suspension()
        self.begin()

    async def close(self) -> None:
        """End the session."""
        self.end(SessionState.CLOSED)

    async def run(self) -> None:
        """There is nothing to keep alive."""

    async def _turn(self) -> None:
        await Suspension()
        if self.session_state is not SessionState.CONNECTED:
            raise SessionExpired

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """See `MetadataStore.get_many`: what others write may come between two of them."""
        nodes: list[StoredNode | None] = []
        for position, path in enumerate(paths):
            if position % 3 == 0:
                await self._turn()
            nodes.append(self._tree.table.get(path))
        return nodes

    async def children(self, path: str) -> list[str]:
        """See `MetadataStore.children`."""
        await self._turn()
        names = self._tree.table.children(path)
        if names is None:
            raise NoNode(path)
        return names

    async def watch(self, path: str, callback: WatchCallback) -> SimulatedWatch:
        """See `MetadataStore.watch`."""
        await self._turn()
        return SimulatedWatch(self, self._tree.watch(self, path, callback))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """See `MetadataStore.multi`."""
        await self._turn()
        results = self._tree.change(lambda: self._tree.table.apply(operations, self.session_id))
        if self.loses_next:
            self.loses_next = False
            raise StoreUnreachable("", "the answer was lost")
        return results

"""The metadata store: one tree in memory, and the sessions of brokers on it.

Every verb travels to the store and back. In between anything may happen: another broker's write,
a cut of the network, the end of the session. A session that the store has not heard of for its
time-out is over there, whatever its holder thinks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from ...common.sentinels import FOREVER_MS
from ...metadata_store.embedded.node_table import NodeTable, Paths
from ...metadata_store.embedded.watches import EmbeddedWatch, Watches
from ...metadata_store.errors import NoNode, SessionExpired, StoreUnreachable
from ...metadata_store.store import (
    SESSION_ENDED,
    MetadataStore,
    Operation,
    Result,
    SessionState,
    StoredNode,
    WatchCallback,
    WatchEvent,
)
from .kernel import Kernel, Process
from .network import Network

ResultT = TypeVar("ResultT")

STORE = "store"
"""Its name as a host."""
LOOK_MS = 100
"""How often one who cannot reach the store tries again."""
NODES_AT_A_TIME = 3
"""Of a reading of many nodes; what others write may come between."""


class StoreServer:
    """The tree that all sessions share.

    Args:
        kernel: the time.
        network: which hosts reach it, and how fast.
        rng: decides how long verbs take.
        on_change: called with the paths that a transaction touched, once it is done.
        session_timeout_ms: of all sessions.

    Attributes:
        slow_us: how much longer than usual each verb takes.
    """

    def __init__(
        self,
        kernel: Kernel,
        network: Network,
        rng: Random,
        on_change: Callable[[Paths], None],
        session_timeout_ms: int,
    ) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self.table = NodeTable(connection)
        self.table.create_schema()
        self.kernel = kernel
        self.network = network
        self.session_timeout_ms = session_timeout_ms
        self.slow_us = 0
        self._connection = connection
        self._rng = rng
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
            self.kernel.after(self.delay_us(), lambda: tell(event), session.process)

        def tell(event: WatchEvent) -> None:
            if watch not in session.watches:
                return
            if self.is_cut(session.host):
                self.kernel.after(LOOK_MS * 1000, lambda: tell(event), session.process)
            else:
                callback(event)

        watch = self._watches.add(path, seen)
        session.watches.append(watch)
        return watch

    def delay_us(self) -> int:
        """How long half of a verb takes."""
        return self.network.delay_us() + self.slow_us

    def is_cut(self, host: str) -> bool:
        """Whether a host and the store cannot talk."""
        cut = self.network.cut
        return bool(cut) and ((host, STORE) in cut or (STORE, host) in cut)


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
    """A session of a process; satisfies `MetadataStore`.

    Args:
        server: the store.
        host: where the process is.
        process: whose it is.

    Attributes:
        loses_next: the next write is done, but its answer is lost.
        is_over: whether the store has ended it, which the process may not know yet.
    """

    def __init__(self, server: StoreServer, host: str, process: Process) -> None:
        super().__init__()
        self.host = host
        self.process = process
        self.loses_next = False
        self.is_over = True
        self.watches: list[EmbeddedWatch] = []
        self.former_session_lasts_ms = server.session_timeout_ms
        self._server = server
        self._heard_us = 0

    # -- its life ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Begin a session."""
        self._give_up_session()
        await self._travel()
        server = self._server
        if not self.is_over:  # nobody holds it any more, which the store does not know
            self._drop_watches()
            former = self.session_id
            server.kernel.after(server.session_timeout_ms * 1000, lambda: self._end(former))
        self.session_id = server.change(lambda: (server.table.begin_session(FOREVER_MS), set()))
        self.is_over = False
        self._heard_us = server.kernel.now_us
        self._expect()
        self._change_state(SessionState.CONNECTED)

    async def close(self) -> None:
        """End the session."""
        self.end()
        self._change_state(SessionState.CLOSED)

    async def run(self) -> None:
        """Keep it alive until it is over."""
        while self.session_state not in SESSION_ENDED:
            await self._server.kernel.sleep(self._server.session_timeout_ms / 3000)
            try:
                await self._turn()
            except SessionExpired:
                return
            except StoreUnreachable:
                continue

    def end(self) -> None:
        """The store ends it, at once: its ephemeral nodes are gone."""
        if self.is_over:
            return
        self.is_over = True
        self._drop_watches()
        self._end(self.session_id)

    def _drop_watches(self) -> None:
        while self.watches:
            self.watches.pop().cancel()

    def _end(self, session_id: int) -> None:
        table = self._server.table
        self._server.change(lambda: (None, table.end_session(session_id)))

    def _expect(self) -> None:
        """End it where nothing is heard for its time-out."""
        kernel = self._server.kernel
        timeout_us = self._server.session_timeout_ms * 1000
        due_us = self._heard_us + timeout_us

        def look() -> None:
            if not self.is_over and self.session_id == session_id:
                if kernel.now_us - self._heard_us >= timeout_us:
                    self.end()
                else:
                    self._expect()

        session_id = self.session_id
        kernel.after(due_us - kernel.now_us, look)

    # -- verbs ---------------------------------------------------------------------------------

    async def _travel(self) -> None:
        """A request goes to the store, for as long as it takes."""
        server = self._server
        waited_ms = 0
        await server.kernel.sleep_us(server.delay_us())
        while server.is_cut(self.host):
            if waited_ms >= server.session_timeout_ms:
                raise StoreUnreachable(STORE, "it does not answer")
            waited_ms += LOOK_MS
            await server.kernel.sleep(LOOK_MS / 1000)

    async def _turn(self) -> None:
        self._require_session()
        await self._travel()
        if self.is_over:
            self._change_state(SessionState.EXPIRED)
            raise SessionExpired
        self._heard_us = self._server.kernel.now_us

    async def _return(self) -> None:
        """An answer comes back; what was done may not be known."""
        server = self._server
        if self.loses_next:
            self.loses_next = False
            raise StoreUnreachable(STORE, "the answer was lost")
        await server.kernel.sleep_us(server.delay_us())
        if server.is_cut(self.host):
            raise StoreUnreachable(STORE, "the answer did not come")

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """See `MetadataStore.get_many`."""
        nodes: list[StoredNode | None] = []
        table = self._server.table
        for position, path in enumerate(paths):
            if position % NODES_AT_A_TIME == 0:
                await self._turn()
            nodes.append(table.get(path))
        await self._server.kernel.sleep_us(self._server.delay_us())
        return nodes

    async def children(self, path: str) -> list[str]:
        """See `MetadataStore.children`."""
        await self._turn()
        names = self._server.table.children(path)
        await self._server.kernel.sleep_us(self._server.delay_us())
        if names is None:
            raise NoNode(path)
        return names

    async def watch(self, path: str, callback: WatchCallback) -> SimulatedWatch:
        """See `MetadataStore.watch`."""
        await self._turn()
        return SimulatedWatch(self, self._server.watch(self, path, callback))

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """See `MetadataStore.multi`."""
        await self._turn()
        server = self._server
        results = server.change(lambda: server.table.apply(operations, self.session_id))
        await self._return()
        return results

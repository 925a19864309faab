"""A metadata store in ZooKeeper, for brokers of several machines; speaks through kazoo.

kazoo runs threads of its own, which hand every answer and every watch over to trio's loop; all
state here is touched on the loop only. Reads are tried again when the connection breaks. A
write is not: whether it was done is unknown then, and whoever asked must look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import trio
from kazoo.client import KazooClient
from kazoo.protocol.states import EventType, KazooState, WatchedEvent

from .errors import NoNode, SessionExpired, StoreUnreachable
from .node_table import split_path
from .store import (
    ANY_VERSION,
    Change,
    Create,
    Node,
    Operation,
    Result,
    SessionListener,
    SessionState,
    WatchCallback,
    WatchEvent,
)
from .zookeeper_operations import add_operation, first_refusal, results_of, translate

logger = logging.getLogger(__name__)

SESSION_TIMEOUT_MS = 18_000
"""Kafka's zookeeper.session.timeout.ms."""

READS_IN_FLIGHT_MAX = 1_000
READ_RETRY_MS = 100

RAN_OUT = (SessionState.EXPIRED, SessionState.CLOSED)


class ZooKeeperTls(NamedTuple):
    """PEM files for TLS; what is empty is not used."""

    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password: str = ""
    verify: bool = True


class ZooKeeperStore:
    """A session on a ZooKeeper tree.

    Args:
        connect: `host:port,host:port/chroot`; the chroot is made if it is not there.
        session_timeout_ms: how long after its holder fell silent a session ends.
        connection_timeout_ms: how long `open` waits for a server.
        digest: `user:password`, added to the session (scheme "digest").
        tls: speak TLS with these files.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        connection_timeout_ms: int = SESSION_TIMEOUT_MS,
        digest: str | None = None,
        tls: ZooKeeperTls | None = None,
    ) -> None:
        self._hosts, slash, chroot = connect.partition("/")
        self._chroot = slash + chroot.strip("/") if chroot.strip("/") else ""
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._digest = digest
        self._tls = tls
        self._client: Any = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._session_id = 0
        self._session_state = SessionState.CLOSED
        self._listeners: list[SessionListener] = []
        self._watches: set[ZooKeeperWatch] = set()
        self._over = trio.Event()

    # -- the session ----------------------------------------------------------------

    @property
    def session_id(self) -> int:
        """Names this session among all of the store's."""
        return self._session_id

    @property
    def session_state(self) -> SessionState:
        """How the session stands now."""
        return self._session_state

    @property
    def former_session_lasts_ms(self) -> int:
        """How long the ephemeral nodes of a holder that crashed may still be there."""
        return self._session_timeout_ms

    def add_session_listener(self, listener: SessionListener) -> None:
        """Call `listener` with every new state of the session."""
        self._listeners.append(listener)

    async def open(self) -> None:
        """Connect and begin a session; the watches of an earlier one are gone.

        Raises:
            StoreUnreachable: no server answered in time.
        """
        await self._stop_client()
        self._token = trio.lowlevel.current_trio_token()
        if self._chroot:
            await self._make_chroot()
        client = self._make_client(self._hosts + self._chroot)
        client.add_listener(lambda state: self._on_loop(self._changed, client, state))
        self._client = client
        self._watches = set()
        self._over = trio.Event()
        await self._connect(client)
        self._session_id = client.client_id[0]
        self._change_state(SessionState.CONNECTED)

    def _make_client(self, hosts: str) -> Any:
        tls = self._tls
        options: dict[str, Any] = {}
        if tls is not None:
            options = {
                "use_ssl": True,
                "ca": tls.ca_file or None,
                "certfile": tls.certificate_file or None,
                "keyfile": tls.key_file or None,
                "keyfile_password": tls.key_password or None,
                "verify_certs": tls.verify,
            }
        return KazooClient(
            hosts=hosts,
            timeout=self._session_timeout_ms / 1000,
            auth_data=[("digest", self._digest)] if self._digest else None,
            connection_retry={"max_tries": -1, "delay": 0.05, "max_delay": 1.0},
            logger=logging.getLogger("odradek.zookeeper"),
            **options,
        )

    async def _connect(self, client: Any) -> None:
        connected = client.start_async()
        try:
            await trio.to_thread.run_sync(
                connected.wait, self._connection_timeout_ms / 1000, abandon_on_cancel=True
            )
        finally:
            if not client.connected:
                await self._stop(client)
        if not client.connected:
            raise StoreUnreachable(
                self._hosts, f"no ZooKeeper answered within {self._connection_timeout_ms} ms"
            )

    async def _make_chroot(self) -> None:
        client = self._make_client(self._hosts)
        await self._connect(client)
        try:
            await trio.to_thread.run_sync(client.ensure_path, self._chroot)
        except Exception as error:
            raise translate(error, self._chroot) from error
        finally:
            await self._stop(client)

    async def _stop(self, client: Any) -> None:
        """Stopping joins kazoo's threads."""

        def stop() -> None:
            client.stop()
            client.close()

        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(stop)

    async def _stop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await self._stop(client)

    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone at once."""
        self._change_state(SessionState.CLOSED)
        await self._stop_client()

    async def run(self) -> None:
        """Wait until the session is over; kazoo's threads keep it alive."""
        await self._over.wait()

    def _on_loop(self, work: Callable[..., None], *arguments: Any) -> None:
        """Called in kazoo's threads: have the loop do something."""
        assert self._token is not None
        with suppress(trio.RunFinishedError):  # nobody is there to be told
            self._token.run_sync_soon(work, *arguments)

    def _changed(self, client: Any, state: str) -> None:
        if client is not self._client or self._session_state in RAN_OUT:
            return
        if state == KazooState.LOST:
            self._change_state(SessionState.EXPIRED)
        elif state == KazooState.SUSPENDED:
            self._change_state(SessionState.LOST)
        elif self._session_state is SessionState.LOST:
            self._change_state(SessionState.CONNECTED)
            # Their watches went with the connection, and so did what they might have told.
            for watch in list(self._watches):
                watch.fired(Change.NODE)

    def _change_state(self, state: SessionState) -> None:
        if state is self._session_state:
            return
        if state is SessionState.EXPIRED:
            logger.warning("ZooKeeper ended session %x", self._session_id)
        self._session_state = state
        if state in RAN_OUT:
            self._watches.clear()
            self._over.set()
        for listener in list(self._listeners):
            listener(state)

    # -- the verbs ------------------------------------------------------------------

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Make a node and return its path. Raises: see `MetadataStore.create`."""
        (created,) = await self.multi([Create(path, data, ephemeral, sequential)])
        assert isinstance(created, str)
        return created

    async def get(self, path: str) -> Node:
        """Read a node; raises NoNode where there is none."""
        (node,) = await self.get_many([path])
        if node is None:
            raise NoNode(path)
        return node

    async def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        """Read many nodes, None where there is none; many requests are in flight at a time."""
        nodes: list[Node | None] = []
        for start in range(0, len(paths), READS_IN_FLIGHT_MAX):
            nodes += await self._get_some(paths[start : start + READS_IN_FLIGHT_MAX])
        return nodes

    async def _get_some(self, paths: Sequence[str]) -> list[Node | None]:
        while True:
            self._require_session()
            client = self._client
            results = [client.get_async(path) for path in paths]
            await self._done(results[-1])  # answers come in order
            nodes: list[Node | None] = []
            try:
                for path, result in zip(paths, results, strict=True):
                    nodes.append(_node(path, result))
            except StoreUnreachable:
                await self._wait_for_connection()
                continue
            return nodes

    async def set(self, path: str, data: bytes, expected_version: int = ANY_VERSION) -> int:
        """Replace a node's data. Raises: see `MetadataStore.set`."""
        stat = await self._ask(path, lambda: self._client.set_async(path, data, expected_version))
        return int(stat.version)

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        """Remove a node. Raises: see `MetadataStore.delete`."""
        await self._ask(path, lambda: self._client.delete_async(path, expected_version))

    async def children(self, path: str) -> list[str]:
        """The sorted names of a node's children; raises NoNode where there is no node."""
        while True:
            try:
                names = await self._ask(path, lambda: self._client.get_children_async(path))
            except StoreUnreachable:
                await self._wait_for_connection()
                continue
            # ZooKeeper shows its own nodes at the root.
            return sorted(name for name in names if path != "/" or name != "zookeeper")

    async def watch(self, path: str, callback: WatchCallback) -> ZooKeeperWatch:
        """Call back after each later change of a node and of its children."""
        self._require_session()
        watch = ZooKeeperWatch(self, path, callback)
        self._watches.add(watch)
        await self._done(watch.arm())
        return watch

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations in order, or none."""
        if not operations:
            return []
        for operation in operations:
            split_path(operation.path)  # kazoo would make a path of what is none
        self._require_session()
        transaction = self._client.transaction()
        for operation in operations:
            add_operation(transaction, operation)
        answers = await self._ask(operations[0].path, transaction.commit_async)
        refusal = first_refusal(operations, answers)
        if refusal is not None:
            raise refusal
        return results_of(operations, answers)

    # -- around them ----------------------------------------------------------------

    def _require_session(self) -> None:
        if self._session_state in RAN_OUT:
            raise SessionExpired(reason=self._session_state.value)

    async def _ask(self, path: str, start: Callable[[], Any]) -> Any:
        self._require_session()
        result = start()
        await self._done(result)
        if result.exception is not None:
            raise translate(result.exception, path) from result.exception
        return result.value

    async def _done(self, result: Any) -> None:
        """Wait for one of kazoo's results."""
        done = trio.Event()
        result.rawlink(lambda _: self._on_loop(done.set))
        await done.wait()

    async def _wait_for_connection(self) -> None:
        await trio.sleep(READ_RETRY_MS / 1000)
        self._require_session()

    def start_watching(self, watch: ZooKeeperWatch) -> Any:
        """Set both of ZooKeeper's watches on a node; returns the last result to wait for."""

        def told(event: WatchedEvent) -> None:
            change = _CHANGES.get(event.type)
            if change is not None:
                self._on_loop(watch.fired, change)

        watch.told = watch.told or told
        self._client.exists_async(watch.path, watch=watch.told)
        return self._client.get_children_async(watch.path, watch=watch.told)

    def forget(self, watch: ZooKeeperWatch) -> None:
        """Call a watch back no more."""
        self._watches.discard(watch)

    def tell_when_armed(self, watch: ZooKeeperWatch, change: Change) -> None:
        """Watch again, then call back: what is read then misses nothing that follows.

        What else happens until then comes as one; ZooKeeper tells a deletion twice.
        """
        if watch not in self._watches or self._session_state in RAN_OUT:
            return
        if change in watch.untold:
            return
        watch.untold.append(change)
        watch.arm().rawlink(lambda _: self._on_loop(self._tell, watch))

    def _tell(self, watch: ZooKeeperWatch) -> None:
        untold, watch.untold = watch.untold, []
        for change in untold:
            if watch in self._watches:
                watch.callback(WatchEvent(watch.path, change))


class ZooKeeperWatch:
    """A watch that stays: ZooKeeper's own are gone once they have told something."""

    def __init__(self, store: ZooKeeperStore, path: str, callback: WatchCallback) -> None:
        self._store = store
        self.path = path
        self.callback = callback
        self.told: Callable[[WatchedEvent], None] | None = None
        self.untold: list[Change] = []

    def arm(self) -> Any:
        """Ask ZooKeeper to tell of the next change; returns a result to wait for."""
        return self._store.start_watching(self)

    def fired(self, change: Change) -> None:
        """ZooKeeper told of a change."""
        self._store.tell_when_armed(self, change)

    def cancel(self) -> None:
        """Call the callback no more; may be done twice."""
        self._store.forget(self)


_CHANGES = {
    EventType.CREATED: Change.NODE,
    EventType.DELETED: Change.NODE,
    EventType.CHANGED: Change.NODE,
    EventType.CHILD: Change.CHILDREN,
}


def _node(path: str, result: Any) -> Node | None:
    if result.exception is not None:
        error = translate(result.exception, path)
        if isinstance(error, NoNode):
            return None
        raise error
    data, stat = result.value
    return Node(data, stat.version, stat.czxid)

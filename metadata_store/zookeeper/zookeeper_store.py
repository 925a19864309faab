"""A metadata store in ZooKeeper, for brokers of several machines; speaks through kazoo.

kazoo runs threads of its own, which hand everything over to trio's loop; all state here is
touched on the loop only.

A verb that is called while there is no connection waits for one, as long as the session may
last. When a connection breaks, reads under way are sent again. Writes are not: whether they
were done is unknown, and the caller must read to find out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

from ..embedded.node_table import split_path
from ..errors import MetadataStoreError, NoNode, StoreUnreachable
from ..store import (
    ANY_VERSION,
    SESSION_ENDED,
    SESSION_TIMEOUT_MS,
    MetadataStore,
    Operation,
    Result,
    SessionState,
    StoredNode,
    WatchCallback,
)
from .monotonic_kazoo import keep_connections_by_monotonic_time
from .operations import (
    acl_of,
    add_operation,
    first_refusal,
    is_connection_loss,
    results_of,
    translate,
)
from .watches import ZooKeeperWatch, ZooKeeperWatches

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

READS_IN_FLIGHT_MAX = 1_000
READ_RETRY_MS = 100


class ZooKeeperStore(MetadataStore):
    """A session on a ZooKeeper tree.

    Args:
        connect: `host:port,host:port/chroot`; the chroot is made if it is not there.
        session_timeout_ms: how long after its holder fell silent a session ends.
        connection_timeout_ms: how long `open` waits for a server.
        digest: `user:password`, added to the session (scheme "digest").
        tls: speak TLS in this way.
        set_acl: whether the nodes that are made may be changed by who made them only.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        connection_timeout_ms: int = SESSION_TIMEOUT_MS,
        digest: str | None = None,
        tls: ssl.SSLContext | None = None,
        set_acl: bool = False,
    ) -> None:
        super().__init__()
        self._hosts, slash, chroot = connect.partition("/")
        self._chroot = slash + chroot.strip("/") if chroot.strip("/") else ""
        self.former_session_lasts_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._digest = digest
        self._tls = tls
        self._set_acl = set_acl
        self._client: Any = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._over = trio.Event()
        self._watches = ZooKeeperWatches(
            lambda: self._client, self._on_loop, lambda: self.session_state
        )

    @property
    def location(self) -> str:
        """The servers and the chroot."""
        return f"ZooKeeper at {self._hosts}{self._chroot}"

    # -- the session ----------------------------------------------------------------

    async def open(self) -> None:
        """Connect and begin a session; the watches of an earlier one are gone.

        Raises:
            StoreUnreachable: no server answered in time.
        """
        self._give_up_session()
        self._watches.clear()
        await self._stop_client()
        self._token = trio.lowlevel.current_trio_token()
        if self._chroot:
            await self._make_chroot()
        client = self._make_client(self._hosts + self._chroot)
        client.add_listener(lambda state: self._on_loop(self._connection_changed, client, state))
        self._client = client
        self._over = trio.Event()
        await self._connect(client)
        self.session_id = client.client_id[0]
        self._change_state(SessionState.CONNECTED)
        await self.get_many(["/"])  # an answer brings the latest transaction id, a connection not
        self.opened_at = client.last_zxid  # the session itself has counted

    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone at once."""
        self._change_state(SessionState.CLOSED)
        await self._stop_client()

    async def run(self) -> None:
        """Wait until the session is over; kazoo's threads keep it alive."""
        await self._over.wait()

    def _make_client(self, hosts: str) -> Any:
        options: dict[str, Any] = {}
        if self._tls is not None:
            from .zookeeper_tls import TlsHandler

            options = {"handler": TlsHandler(self._tls, self._hosts), "use_ssl": True}
        keep_connections_by_monotonic_time()
        return KazooClient(
            hosts=hosts,
            timeout=self.former_session_lasts_ms / 1000,
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
                await _stop(client)
        if not client.connected:
            why = getattr(client.handler, "last_error", None)
            raise StoreUnreachable(
                self._hosts,
                f"no ZooKeeper answered within {self._connection_timeout_ms} ms"
                + (f": {why}" if why else ""),
            )

    async def _make_chroot(self) -> None:
        client = self._make_client(self._hosts)
        await self._connect(client)
        try:
            await trio.to_thread.run_sync(
                client.ensure_path, self._chroot, acl_of(self._chroot, self._set_acl)
            )
        except Exception as error:
            raise translate(error, self._chroot) from error
        finally:
            await _stop(client)

    async def _stop_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await _stop(client)

    def _connection_changed(self, client: Any, state: str) -> None:
        if client is not self._client or self.session_state in SESSION_ENDED:
            return
        if state == KazooState.LOST:
            logger.warning("ZooKeeper ended session %x", self.session_id)
            self._change_state(SessionState.EXPIRED)
        elif state == KazooState.SUSPENDED:
            self._change_state(SessionState.LOST)
        elif self.session_state is SessionState.LOST:
            self._change_state(SessionState.CONNECTED)

    def _change_state(self, state: SessionState) -> None:
        if state is self.session_state:
            return
        if state in SESSION_ENDED:
            self._over.set()
            self._watches.clear()
        elif state is SessionState.CONNECTED:
            self._watches.connected()
        super()._change_state(state)

    # -- the verbs ------------------------------------------------------------------

    async def get_many(self, paths: Sequence[str]) -> list[StoredNode | None]:
        """Read many nodes, None where there is none; many requests are in flight at a time."""
        nodes: list[StoredNode | None] = []
        for start in range(0, len(paths), READS_IN_FLIGHT_MAX):
            nodes += await self._get_some(paths[start : start + READS_IN_FLIGHT_MAX])
        return nodes

    async def _get_some(self, paths: Sequence[str]) -> list[StoredNode | None]:
        while True:
            self._require_session()
            results = [self._client.get_async(path) for path in paths]
            await self._wait_for(results[-1])  # answers come in order
            if not any(is_connection_loss(result.exception) for result in results):
                return [_node_of(*each) for each in zip(paths, results, strict=True)]
            await trio.sleep(READ_RETRY_MS / 1000)

    async def set(self, path: str, data: bytes, expected_version: int = ANY_VERSION) -> int:
        """Replace a node's data. Raises: see `MetadataStore.set`."""
        stat = await self._request(
            path, lambda client: client.set_async(path, data, expected_version)
        )
        return int(stat.version)

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        """Remove a node. Raises: see `MetadataStore.delete`."""
        await self._request(path, lambda client: client.delete_async(path, expected_version))

    async def children(self, path: str) -> list[str]:
        """The sorted names of a node's children; raises NoNode where there is no node."""
        while True:
            try:
                names = await self._request(path, lambda client: client.get_children_async(path))
            except MetadataStoreError as error:
                if not is_connection_loss(error.__cause__):
                    raise
                await trio.sleep(READ_RETRY_MS / 1000)
                continue
            # ZooKeeper shows its own nodes at the root.
            return sorted(name for name in names if path != "/" or name != "zookeeper")

    async def watch(self, path: str, callback: WatchCallback) -> ZooKeeperWatch:
        """Call back after each later change of a node and of its children."""
        self._require_session()
        watch, armed = self._watches.add(path, callback)
        await self._wait_for(armed)
        return watch

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations in order, or none."""
        if not operations:
            return []
        for operation in operations:
            split_path(operation.path)  # kazoo would accept a path that is not absolute
        self._require_session()
        transaction = self._client.transaction()
        for operation in operations:
            add_operation(transaction, operation, self._set_acl)
        answers = await self._request(operations[0].path, lambda _: transaction.commit_async())
        refusal = first_refusal(operations, answers)
        if refusal is not None:
            raise refusal
        return results_of(operations, answers)

    # -- kazoo's threads and results ------------------------------------------------

    def _on_loop(self, work: Callable[..., None], *arguments: Any) -> None:
        """Called in kazoo's threads: have the loop do something."""
        assert self._token is not None
        with suppress(trio.RunFinishedError):  # the loop has ended, and with it who listened
            self._token.run_sync_soon(_do, work, *arguments)

    async def _wait_for(self, result: Any) -> None:
        """Wait for one of kazoo's results."""
        done = trio.Event()
        result.rawlink(lambda _: self._on_loop(done.set))
        await done.wait()

    async def _request(self, path: str, start: Callable[[Any], Any]) -> Any:
        self._require_session()
        result = start(self._client)
        await self._wait_for(result)
        return _value_of(path, result)


def _do(work: Callable[..., None], *arguments: Any) -> None:
    """What fails here would end the whole loop."""
    try:
        work(*arguments)
    except Exception:
        logger.exception("a notification of ZooKeeper could not be acted on")


async def _stop(client: Any) -> None:
    """Stopping joins kazoo's threads."""

    def stop() -> None:
        client.stop()
        client.close()

    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(stop)


def _value_of(path: str, result: Any) -> Any:
    """What kazoo got. Raises MetadataStoreError."""
    if result.exception is not None:
        raise translate(result.exception, path) from result.exception
    return result.value


def _node_of(path: str, result: Any) -> StoredNode | None:
    try:
        data, stat = _value_of(path, result)
    except NoNode:
        return None
    # Kafka creates the nodes that only hold children without any data.
    return StoredNode(data or b"", stat.version, stat.czxid, stat.cversion)

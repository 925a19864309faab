"""A session of ZooKeeper's, held through kazoo.

kazoo runs threads of its own, which hand everything over to trio's loop; all state here is
touched on the loop only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

from ..errors import SessionExpired, StoreUnreachable
from ..store import SessionListener, SessionState
from .operations import acl_of, translate

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

SESSION_TIMEOUT_MS = 18_000
"""Kafka's zookeeper.session.timeout.ms."""

RAN_OUT = (SessionState.EXPIRED, SessionState.CLOSED)


class ZooKeeperSession:
    """One session after the other on a ZooKeeper tree.

    Args:
        connect: `host:port,host:port/chroot`; the chroot is made if it is not there.
        timeout_ms: how long after its holder fell silent a session ends.
        connection_timeout_ms: how long `open` waits for a server.
        digest: `user:password`, added to the session (scheme "digest").
        tls: speak TLS in this way.
        set_acl: whether nodes may be changed by who made them only.

    Attributes:
        client: kazoo's, while a session is open.
        session_id: names this session among all of the tree's.
        state: how it stands now.
    """

    def __init__(
        self,
        connect: str,
        *,
        timeout_ms: int,
        connection_timeout_ms: int,
        digest: str | None,
        tls: ssl.SSLContext | None,
        set_acl: bool,
    ) -> None:
        self._hosts, slash, chroot = connect.partition("/")
        self._chroot = slash + chroot.strip("/") if chroot.strip("/") else ""
        self.timeout_ms = timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        self._digest = digest
        self._tls = tls
        self.set_acl = set_acl
        self.client: Any = None
        self.session_id = 0
        self.state = SessionState.CLOSED
        self._token: trio.lowlevel.TrioToken | None = None
        self._listeners: list[SessionListener] = []
        self._over = trio.Event()

    def add_listener(self, listener: SessionListener) -> None:
        """Call `listener` with every new state of the session."""
        self._listeners.append(listener)

    # -- beginning and end ------------------------------------------------------------

    async def open(self) -> None:
        """Connect and begin a session. Raises StoreUnreachable: no server answered in time."""
        await self._stop_client()
        self._token = trio.lowlevel.current_trio_token()
        if self._chroot:
            await self._make_chroot()
        client = self._make_client(self._hosts + self._chroot)
        client.add_listener(lambda state: self.on_loop(self._changed, client, state))
        self.client = client
        self._over = trio.Event()
        await self._connect(client)
        self.session_id = client.client_id[0]
        self._change_state(SessionState.CONNECTED)

    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone at once."""
        self._change_state(SessionState.CLOSED)
        await self._stop_client()

    async def wait_until_over(self) -> None:
        """Until it is closed or has expired; kazoo's threads keep it alive."""
        await self._over.wait()

    def _make_client(self, hosts: str) -> Any:
        options: dict[str, Any] = {}
        if self._tls is not None:
            from .zookeeper_tls import TlsHandler

            options = {"handler": TlsHandler(self._tls, self._hosts), "use_ssl": True}
        return KazooClient(
            hosts=hosts,
            timeout=self.timeout_ms / 1000,
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
                client.ensure_path, self._chroot, acl_of(self._chroot, self.set_acl)
            )
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
        client, self.client = self.client, None
        if client is not None:
            await self._stop(client)

    # -- its states -------------------------------------------------------------------

    def _changed(self, client: Any, state: str) -> None:
        if client is not self.client or self.state in RAN_OUT:
            return
        if state == KazooState.LOST:
            self._change_state(SessionState.EXPIRED)
        elif state == KazooState.SUSPENDED:
            self._change_state(SessionState.LOST)
        elif self.state is SessionState.LOST:
            self._change_state(SessionState.CONNECTED)

    def _change_state(self, state: SessionState) -> None:
        if state is self.state:
            return
        if state is SessionState.EXPIRED:
            logger.warning("ZooKeeper ended session %x", self.session_id)
        self.state = state
        if state in RAN_OUT:
            self._over.set()
        for listener in list(self._listeners):
            listener(state)

    # -- for who asks something of it ---------------------------------------------------

    def require(self) -> None:
        """Raises SessionExpired once it is over."""
        if self.state in RAN_OUT:
            raise SessionExpired(reason=self.state.value)

    def on_loop(self, work: Callable[..., None], *arguments: Any) -> None:
        """Called in kazoo's threads: have the loop do something."""
        assert self._token is not None
        with suppress(trio.RunFinishedError):  # nobody is there to be told
            self._token.run_sync_soon(work, *arguments)

    async def wait_for(self, result: Any) -> None:
        """Wait for one of kazoo's results."""
        done = trio.Event()
        result.rawlink(lambda _: self.on_loop(done.set))
        await done.wait()

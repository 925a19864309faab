"""A metadata store in ZooKeeper, for brokers of several machines; speaks through kazoo.

What is asked while there is no connection waits for one, as long as the session may last. When
a connection breaks, reads under way are asked again. Writes are not: whether they were done is
unknown, and whoever asked must look.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from ..embedded.node_table import split_path
from ..errors import MetadataStoreError, NoNode
from ..multi_verbs import MultiVerbs
from ..store import (
    ANY_VERSION,
    Node,
    Operation,
    Result,
    SessionListener,
    SessionState,
    WatchCallback,
)
from .operations import add_operation, first_refusal, is_connection_loss, results_of, translate
from .watches import ZooKeeperWatch, ZooKeeperWatches
from .zookeeper_session import SESSION_TIMEOUT_MS, ZooKeeperSession

if TYPE_CHECKING:
    import ssl

READS_IN_FLIGHT_MAX = 1_000
READ_RETRY_MS = 100


class ZooKeeperStore(MultiVerbs):
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
        self._session = ZooKeeperSession(
            connect,
            timeout_ms=session_timeout_ms,
            connection_timeout_ms=connection_timeout_ms,
            digest=digest,
            tls=tls,
            set_acl=set_acl,
        )
        self._watches = ZooKeeperWatches(self._session)

    # -- the session ----------------------------------------------------------------

    @property
    def session_id(self) -> int:
        """Names this session among all of the store's."""
        return self._session.session_id

    @property
    def session_state(self) -> SessionState:
        """How the session stands now."""
        return self._session.state

    @property
    def former_session_lasts_ms(self) -> int:
        """How long the ephemeral nodes of a holder that crashed may still be there."""
        return self._session.timeout_ms

    def add_session_listener(self, listener: SessionListener) -> None:
        """Call `listener` with every new state of the session."""
        self._session.add_listener(listener)

    async def open(self) -> None:
        """Connect and begin a session; the watches of an earlier one are gone.

        Raises:
            StoreUnreachable: no server answered in time.
        """
        self._watches.clear()
        await self._session.open()

    async def close(self) -> None:
        """End the session: its ephemeral nodes are gone at once."""
        await self._session.close()

    async def run(self) -> None:
        """Wait until the session is over; kazoo's threads keep it alive."""
        await self._session.wait_until_over()

    # -- the verbs ------------------------------------------------------------------

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
            self._session.require()
            client = self._session.client
            results = [client.get_async(path) for path in paths]
            await self._session.wait_for(results[-1])  # answers come in order
            if not any(is_connection_loss(result.exception) for result in results):
                return [_node_of(*each) for each in zip(paths, results, strict=True)]
            await self._wait_for_connection()

    async def set(self, path: str, data: bytes, expected_version: int = ANY_VERSION) -> int:
        """Replace a node's data. Raises: see `MetadataStore.set`."""
        stat = await self._ask(path, lambda client: client.set_async(path, data, expected_version))
        return int(stat.version)

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        """Remove a node. Raises: see `MetadataStore.delete`."""
        await self._ask(path, lambda client: client.delete_async(path, expected_version))

    async def children(self, path: str) -> list[str]:
        """The sorted names of a node's children; raises NoNode where there is no node."""
        while True:
            try:
                names = await self._ask(path, lambda client: client.get_children_async(path))
            except MetadataStoreError as error:
                if not is_connection_loss(error.__cause__):
                    raise
                await self._wait_for_connection()
                continue
            # ZooKeeper shows its own nodes at the root.
            return sorted(name for name in names if path != "/" or name != "zookeeper")

    async def watch(self, path: str, callback: WatchCallback) -> ZooKeeperWatch:
        """Call back after each later change of a node and of its children."""
        self._session.require()
        return await self._watches.add(path, callback)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations in order, or none."""
        if not operations:
            return []
        for operation in operations:
            split_path(operation.path)  # kazoo would make a path of what is none
        self._session.require()
        transaction = self._session.client.transaction()
        for operation in operations:
            add_operation(transaction, operation, self._session.set_acl)
        answers = await self._ask(operations[0].path, lambda _: transaction.commit_async())
        refusal = first_refusal(operations, answers)
        if refusal is not None:
            raise refusal
        return results_of(operations, answers)

    # -- around them ----------------------------------------------------------------

    async def _ask(self, path: str, start: Callable[[Any], Any]) -> Any:
        self._session.require()
        result = start(self._session.client)
        await self._session.wait_for(result)
        return _value_of(path, result)

    async def _wait_for_connection(self) -> None:
        await trio.sleep(READ_RETRY_MS / 1000)
        self._session.require()


def _value_of(path: str, result: Any) -> Any:
    """What kazoo got. Raises MetadataStoreError."""
    if result.exception is not None:
        raise translate(result.exception, path) from result.exception
    return result.value


def _node_of(path: str, result: Any) -> Node | None:
    try:
        data, stat = _value_of(path, result)
    except NoNode:
        return None
    # Kafka makes the nodes that it only keeps others under without any data.
    return Node(data or b"", stat.version, stat.czxid)

"""The streams from a broker to others, which a test can cut.

Every connection between brokers is opened by one of them, and `BrokerLinks` opens it: so both
brokers of a pair cut what they open. That is replication, the controller's orders, markers of
transactions, and what is forwarded; the metadata store is reached still, as ZooKeeper would be
on a network of its own.
"""

from __future__ import annotations

import errno
from typing import Any

import trio


class OutgoingLink:
    """All connections from this broker to one port.

    Attributes:
        cuts: how often it was cut so that connections broke.
        is_refused: whether it is cut so now.
        flows: not set while nothing comes through, and no connection is reset.
        scopes: what is under way over it.
    """

    def __init__(self) -> None:
        self.cuts = 0
        self.is_refused = False
        self.flows = trio.Event()
        self.flows.set()
        self.scopes: set[trio.CancelScope] = set()

    def cut(self, *, silent: bool) -> None:
        """Let nothing through; where it is not silent, connections break."""
        self.is_refused = not silent
        if silent:
            if self.flows.is_set():
                self.flows = trio.Event()
            return
        self.cuts += 1
        self.flows.set()
        for scope in self.scopes:
            scope.cancel()

    def heal(self) -> None:
        """Let everything through again; what was held back arrives."""
        self.is_refused = False
        self.flows.set()


class CuttableStream(trio.abc.Stream):
    """A stream over a link.

    Its methods raise BrokenResourceError once the link was cut.
    """

    def __init__(self, inner: trio.abc.Stream, link: OutgoingLink) -> None:
        self._inner = inner
        self._link = link
        self._cuts = link.cuts

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, as soon as anything comes through."""
        with self._breakable():
            if not self._link.flows.is_set():
                await self._link.flows.wait()
            await self._inner.send_all(data)
            return
        raise _broken()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until a send may come through."""
        with self._breakable():
            await self._link.flows.wait()
            await self._inner.wait_send_all_might_not_block()
            return
        raise _broken()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """What came, as soon as anything comes through."""
        with self._breakable():
            data = await self._inner.receive_some(max_bytes)
            if not self._link.flows.is_set():
                await self._link.flows.wait()
            return data
        raise _broken()

    async def aclose(self) -> None:
        """Close it, whatever the link is like."""
        await self._inner.aclose()

    def _breakable(self) -> _Breakable:
        if self._cuts != self._link.cuts:
            raise _broken()
        return _Breakable(self._link)


class _Breakable:
    """A scope that ends when a link is cut."""

    def __init__(self, link: OutgoingLink) -> None:
        self._link = link
        self._scope = trio.CancelScope()

    def __enter__(self) -> None:
        self._link.scopes.add(self._scope)
        self._scope.__enter__()

    def __exit__(self, *details: Any) -> bool:
        self._link.scopes.discard(self._scope)
        return self._scope.__exit__(*details)


def _broken() -> trio.BrokenResourceError:
    return trio.BrokenResourceError("the link to the other broker was cut by a test")


class Links:
    """The links from one broker, by the port of the other."""

    def __init__(self) -> None:
        self._links: dict[int, OutgoingLink] = {}

    def link(self, port: int) -> OutgoingLink:
        """The link to a port."""
        return self._links.setdefault(port, OutgoingLink())

    async def connect(self, host: str, port: int) -> trio.abc.Stream:
        """Open a stream to another broker. Raises OSError: nobody listens, or the link is cut."""
        link = self.link(port)
        await link.flows.wait()
        if link.is_refused:
            raise OSError(errno.ECONNREFUSED, "the link was cut by a test")
        return CuttableStream(await trio.open_tcp_stream(host, port), link)

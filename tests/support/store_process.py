"""A process of its own that opens sessions on an embedded store for a test.

Each connection to it is one session. What a session can be asked goes over it as pickled
tuples, a length before each; answers, watch events and states of the session come back in the
order in which they happened.
"""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import trio

from odradek.metadata_store.embedded.embedded_store import EmbeddedStore
from odradek.metadata_store.errors import StoreUnreachable
from odradek.metadata_store.store import (
    ANY_VERSION,
    Operation,
    Result,
    SessionListener,
    SessionState,
    StoredNode,
    WatchCallback,
)
from odradek.runtime.clock import SystemClock

LENGTH = struct.Struct(">I")


class StoreProcess:
    """The process; a context manager that kills it."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def pause(self) -> None:
        """SIGSTOP: it does nothing, and holds what it has."""
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self._process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def __enter__(self) -> StoreProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class RemoteStore:
    """A session that the process holds, with the face of a `MetadataStore`.

    Args:
        process: who holds it.
        nursery: where what comes from there is received.
        path: the store's file.
        options: what else the `EmbeddedStore` is made with.
    """

    def __init__(
        self, process: StoreProcess, nursery: trio.Nursery, path: Path, **options: Any
    ) -> None:
        self._process = process
        self._nursery = nursery
        self._made_with = {"path": path, **options}
        self._outgoing: trio.MemorySendChannel[Any] | None = None
        self._numbers = itertools.count()
        self._answers: dict[int, Any] = {}
        self._waiting: dict[int, trio.Event] = {}
        self._callbacks: dict[int, WatchCallback] = {}
        self._listeners: list[SessionListener] = []
        self.session_id = 0
        self.session_state = SessionState.CLOSED
        self.former_session_lasts_ms = 0

    def add_session_listener(self, listener: SessionListener) -> None:
        """Call `listener` with every new state of the session."""
        self._listeners.append(listener)

    async def open(self) -> None:
        """Connect to the process at first, and have it begin a session."""
        if self._outgoing is None:
            stream = await trio.open_tcp_stream("127.0.0.1", self._process.port)
            self._outgoing, outgoing = trio.open_memory_channel[Any](10_000)
            self._nursery.start_soon(_send_all, stream, outgoing)
            self._nursery.start_soon(self._receive_all, stream)
            self._outgoing.send_nowait(self._made_with)
        await self._ask("open")

    async def close(self) -> None:
        await self._ask("close")

    async def run(self) -> None:
        await self._ask("run")

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        made: str = await self._ask(
            "create", path, data, ephemeral=ephemeral, sequential=sequential
        )
        return made

    async def get(self, path: str) -> StoredNode:
        node: StoredNode = await self._ask("get", path)
        return node

    async def get_many(self, paths: list[str]) -> list[StoredNode | None]:
        nodes: list[StoredNode | None] = await self._ask("get_many", paths)
        return nodes

    async def set(self, path: str, data: bytes, expected_version: int = ANY_VERSION) -> int:
        version: int = await self._ask("set", path, data, expected_version)
        return version

    async def delete(self, path: str, expected_version: int = ANY_VERSION) -> None:
        await self._ask("delete", path, expected_version)

    async def children(self, path: str) -> list[str]:
        names: list[str] = await self._ask("children", path)
        return names

    async def multi(self, operations: list[Operation]) -> list[Result]:
        results: list[Result] = await self._ask("multi", operations)
        return results

    async def watch(self, path: str, callback: WatchCallback) -> RemoteWatch:
        number = next(self._numbers)
        self._callbacks[number] = callback
        await self._ask("watch", path, number)
        return RemoteWatch(self, number)

    def cancel(self, watch: int) -> None:
        """Goes out before whatever is asked next."""
        self._send(next(self._numbers), "cancel", watch)

    def _send(self, number: int, verb: str, *arguments: Any, **options: Any) -> None:
        assert self._outgoing is not None
        self._outgoing.send_nowait((number, verb, arguments, options))

    async def _ask(self, verb: str, *arguments: Any, **options: Any) -> Any:
        number = next(self._numbers)
        answered = self._waiting[number] = trio.Event()
        self._send(number, verb, *arguments, **options)
        await answered.wait()
        answer = self._answers.pop(number)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _receive_all(self, stream: trio.SocketStream) -> None:
        try:
            while True:
                kind, number, value = await _receive(stream)
                if kind == "event":
                    self._callbacks[number](value)
                elif kind == "state":
                    self.session_id, self.session_state = number, value
                    for listener in self._listeners:
                        listener(value)
                else:
                    self._answer(number, value)
        except (trio.BrokenResourceError, EOFError):
            for number in list(self._waiting):
                self._answer(number, StoreUnreachable(reason="the process is gone"))

    def _answer(self, number: int, value: Any) -> None:
        answered = self._waiting.pop(number, None)
        if answered is not None:
            self._answers[number] = value
            answered.set()


class RemoteWatch:
    """A watch that the process holds."""

    def __init__(self, store: RemoteStore, number: int) -> None:
        self._store = store
        self._number = number

    def cancel(self) -> None:
        """Call the callback no more; may be done twice."""
        self._store.cancel(self._number)


async def _receive(stream: trio.SocketStream) -> Any:
    (size,) = LENGTH.unpack(await _receive_bytes(stream, LENGTH.size))
    return pickle.loads(await _receive_bytes(stream, size))


async def _receive_bytes(stream: trio.SocketStream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = await stream.receive_some(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


async def _send_all(stream: trio.SocketStream, outgoing: trio.MemoryReceiveChannel[Any]) -> None:
    async for message in outgoing:
        data = pickle.dumps(message)
        try:
            await stream.send_all(LENGTH.pack(len(data)) + data)
        except trio.BrokenResourceError:
            return  # who receives says so


# --- What runs in the process -----------------------------------------------------------------


async def _serve(stream: trio.SocketStream) -> None:
    """Hold one session, until the connection ends."""
    answers, outgoing = trio.open_memory_channel[Any](10_000)
    store = EmbeddedStore(clock=SystemClock(), **await _receive(stream))
    store.add_session_listener(
        lambda state: answers.send_nowait(("state", store.session_id, state))
    )
    watches: dict[int, Any] = {}

    async def watch(path: str, number: int) -> None:
        watches[number] = await store.watch(
            path, lambda event: answers.send_nowait(("event", number, event))
        )

    async def answer(number: int, verb: str, arguments: Any, options: Any) -> None:
        work = watch if verb == "watch" else getattr(store, verb)
        try:
            value = await work(*arguments, **options)
        except Exception as error:
            value = error
        answers.send_nowait(("answer", number, value))

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send_all, stream, outgoing)
            while True:
                number, verb, arguments, options = await _receive(stream)
                if verb == "cancel":
                    watches[arguments[0]].cancel()
                else:
                    nursery.start_soon(answer, number, verb, arguments, options)
    except* (EOFError, trio.BrokenResourceError):
        pass
    finally:
        store.abandon()


async def _main() -> None:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, host="127.0.0.1"), _serve, 0)
        print(listeners[0].socket.getsockname()[1], flush=True)


if __name__ == "__main__":
    trio.run(_main)

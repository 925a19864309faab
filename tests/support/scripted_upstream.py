"""A peer that stands where a broker would, and answers as a test tells it to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable

SECONDS_MAX = 40.0

Answer = Callable[[bytes], bytes | None]
"""Is given a request's frame without its length; returns all bytes to be sent, or None to end."""


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        piece = connection.recv(size - len(received))
        if not piece:
            raise ConnectionError(f"closed after {len(received)} of {size} bytes")
        received += piece
    return received


def receive_frame(connection: socket.socket) -> bytes:
    return receive_exactly(connection, struct.unpack(">i", receive_exactly(connection, 4))[0])


class ScriptedUpstream:
    """Serves one connection after another in threads; a context manager that ends them.

    Attributes:
        frames: what was received, of all connections.
    """

    def __init__(self, answer: Answer) -> None:
        self.frames: list[bytes] = []
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(SECONDS_MAX)
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):  # closed before it is served
            connection.settimeout(SECONDS_MAX)
            while True:
                try:
                    frame = receive_frame(connection)
                    self.frames.append(frame)
                    answer = self._answer(frame)
                    if answer is None:
                        return
                    connection.sendall(answer)
                except OSError:
                    return

    def __enter__(self) -> ScriptedUpstream:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        for connection in self._connections:
            connection.close()

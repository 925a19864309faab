"""A plain connection for loads: frames made before, answers taken as they come."""

from __future__ import annotations

import socket
import struct
from typing import Any

from odradek.protocol.headers import read_response_header, request_header
from odradek.protocol.messages import response_message

CONNECT_SECONDS_MAX = 10
BUFFER_BYTES = 4 << 20
CORRELATION_ID = 7


def frame_of(request: Any, version: int) -> bytes:
    """A request as it goes over the wire."""
    schema = request.schema
    header = request_header(schema.api_key, version, CORRELATION_ID, "profiles")
    body = b"".join([header, *map(bytes, schema.encoder(version)(request))])
    return struct.pack(">i", len(body)) + body


class Wire:
    """One connection; blocking.

    Args:
        host: the broker's.
        port: likewise.
    """

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=CONNECT_SECONDS_MAX)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def send(self, frame: bytes) -> None:
        """Send a whole frame."""
        self.socket.sendall(frame)

    def receive(self) -> memoryview:
        """The next answer without its length; it is valid until the next call.

        Raises:
            ConnectionError: the broker closed the connection.
        """
        self._fill(4)
        size = int.from_bytes(self._buffer[:4], "big")
        self._fill(size)
        return self._buffer[:size]

    def ask(self, request: Any, version: int) -> Any:
        """Send a request and decode its answer."""
        self.send(frame_of(request, version))
        return decoded(self.receive(), request.schema.api_key, version)

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _fill(self, size: int) -> None:
        at = 0
        while at < size:
            taken = self.socket.recv_into(self._buffer[at:size])
            if not taken:
                raise ConnectionError("the broker closed the connection")
            at += taken


def decoded(frame: memoryview, api_key: int, version: int) -> Any:
    """The message of an answer's frame."""
    _, position = read_response_header(frame, api_key, version)
    return response_message(api_key).decoder(version)(frame, position)[0]

"""A plain socket that speaks Kafka frames, well-formed or not.

Messages are encoded and decoded by kafka-python, so that nothing of odradek's own codec
takes part on the client's side.
"""

from __future__ import annotations

import itertools
import select
import socket
import struct
from typing import Any

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.record import MemoryRecordsBuilder

RECEIVE_SECONDS_MAX = 120.0
CLIENT_ID = "raw-connection"
LENGTH = struct.Struct(">i")
BATCH_BYTES_MAX = 1 << 30


class RawConnection:
    """One TCP connection to a broker; a context manager that closes it.

    Args:
        port: the broker's.
        host: the broker's.
        source: the address from which it comes; empty: whatever the system takes.
    """

    def __init__(self, port: int, host: str = "127.0.0.1", source: str = "") -> None:
        self._socket = socket.create_connection(
            (host, port), timeout=RECEIVE_SECONDS_MAX, source_address=(source, 0)
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = itertools.count(1)

    @property
    def local_port(self) -> int:
        """The port of our side, by which the broker's log can name this connection."""
        return int(self._socket.getsockname()[1])

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def send_frame(self, body: bytes) -> None:
        """Send a frame: the length of `body`, and `body`."""
        self.send_bytes(LENGTH.pack(len(body)) + body)

    def send(self, request: ApiMessage, version: int) -> int:
        """Send a request; returns its correlation id."""
        correlation_id = next(self._correlation_ids)
        self.send_frame(encode(request, version, correlation_id))
        return correlation_id

    def receive_frame(self) -> bytes:
        """Receive one frame, without its length.

        Raises:
            ConnectionError: the broker closed the connection.
            TimeoutError: nothing came for `RECEIVE_SECONDS_MAX`.
        """
        (length,) = LENGTH.unpack(self._receive(LENGTH.size))
        return self._receive(length)

    def receive(self, response_class: type[ApiMessage], version: int) -> Any:
        """Receive and decode one response; `.header.correlation_id` tells which."""
        return response_class.decode(self.receive_frame(), version=version, header=True)

    def ask(self, request: ApiMessage, response_class: type[ApiMessage], version: int) -> Any:
        """Send a request and receive its response."""
        correlation_id = self.send(request, version)
        response = self.receive(response_class, version)
        assert response.header.correlation_id == correlation_id
        return response

    def assert_served(self) -> None:
        """The broker answers on this connection."""
        response = self.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
        assert response.error_code == 0

    def assert_closed(self) -> None:
        """The broker closes this connection, or has, and answers nothing before."""
        try:
            answered = self._socket.recv(4096)
        except ConnectionError:
            answered = b""  # closed while bytes of ours were unread
        assert answered == b"", f"the broker answered {answered!r}"

    @property
    def is_silent(self) -> bool:
        """Whether nothing has come from the broker, not even the connection's end."""
        return not select.select([self._socket], [], [], 0)[0]

    @property
    def is_open(self) -> bool:
        """Whether the broker has not closed the connection; it owes us no answer now."""
        readable, _, _ = select.select([self._socket], [], [], 0)
        return not readable or bool(self._socket.recv(1, socket.MSG_PEEK))

    def close_sending(self) -> None:
        """Tell the broker that nothing more will be sent, and go on receiving."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self._socket.recv(size - len(received))
            if not piece:
                raise ConnectionError(f"closed after {len(received)} of {size} bytes")
            received += piece
        return bytes(received)

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encode(request: ApiMessage, version: int, correlation_id: int) -> bytes:
    """Header and body of a request, without the length."""
    request.API_VERSION = version
    request.with_header(correlation_id=correlation_id, client_id=CLIENT_ID)
    return bytes(request.encode(header=True))


def build_batch(values: list[bytes | None], *, timestamp_ms: int, **settings: Any) -> bytes:
    """One record batch (magic 2) of records without keys, as kafka-python builds it.

    Args:
        values: one record each.
        timestamp_ms: of all of them.
        settings: `compression_type`, `producer_id`, `producer_epoch`, `base_sequence`.
    """
    settings = {"compression_type": 0, **settings}
    builder = MemoryRecordsBuilder(magic=2, batch_size=BATCH_BYTES_MAX, **settings)
    for value in values:
        builder.append(timestamp_ms, None, value, [])
    builder.close()
    return bytes(builder.buffer())

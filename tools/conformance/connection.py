"""One TCP connection to a broker, and single requests on it, well-formed or not."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
from types import TracebackType
from typing import Any, NamedTuple, Self

from ...protocol.api_keys import ApiKey
from ...protocol.codec.message import Message
from ...protocol.errors import ProtocolError
from ...protocol.headers import read_response_header, request_header
from ...protocol.messages import (
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    response_message,
)

RESPONSE_SECONDS_MAX = 120.0
RESPONSE_BYTES_MAX = 64 << 20
LENGTH = struct.Struct(">i")
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2


class Login(NamedTuple):
    """A user of SASL PLAIN."""

    name: str
    password: str


class ConnectionClosedError(ConnectionError):
    """The broker closed the connection instead of answering."""


class BlockingConnection:
    """A connection to a broker; a context manager that closes it.

    Args:
        address: HOST:PORT of the broker.
        client_id: what its requests say that they come from.
        timeout: how long to wait for the connection and for each part of an answer, in seconds.
        login: who logs in first; None: nobody does.

    Raises:
        ConnectionError: the broker did not take the login, or the connection.
    """

    def __init__(
        self,
        address: str,
        client_id: str | None = "conformance",
        timeout: float = RESPONSE_SECONDS_MAX,
        login: Login | None = None,
    ) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client_id = client_id
        self._numbers = itertools.count(1)
        if login is not None:
            self._log_in(login)

    def _log_in(self, login: Login) -> None:
        self.send(SaslHandshakeRequest(mechanism="PLAIN"), HANDSHAKE_VERSION)
        self.receive(ApiKey.SASL_HANDSHAKE, HANDSHAKE_VERSION)
        token = "\0".join(("", *login)).encode()
        self.send(SaslAuthenticateRequest(auth_bytes=token), AUTHENTICATE_VERSION)
        answer = self.receive(ApiKey.SASL_AUTHENTICATE, AUTHENTICATE_VERSION)
        if answer.error_code:
            raise ConnectionError(f"{login.name} could not log in: {answer.error_message}")

    def send(self, request: Message, version: int) -> None:
        """Send a request, and do not wait for its answer."""
        self.send_body(
            request, version, b"".join(map(bytes, type(request).encoder(version)(request)))
        )

    def send_body(self, request: Message, version: int, body: bytes) -> None:
        """Send a request's header, and bytes of one's own as its body."""
        api_key = type(request).api_key
        assert api_key is not None
        header = request_header(api_key, version, next(self._numbers), self._client_id)
        self.send_frame(header + body)

    def send_frame(self, frame: bytes) -> None:
        """Send bytes with their length before them."""
        self.send_bytes(LENGTH.pack(len(frame)) + frame)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are; a connection that is closed meanwhile is seen at `receive`."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def receive(self, api_key: int, version: int) -> Any:
        """The answer to a request.

        Raises:
            ConnectionClosedError: there is none.
            ProtocolError: it is no such answer.
            TimeoutError: nothing came for so long.
        """
        frame = self.receive_frame()
        _, position = read_response_header(frame, api_key, version)
        response, end = response_message(api_key).decoder(version)(frame, position)
        if end != len(frame):
            raise ProtocolError(f"{len(frame) - end} bytes are left over after the answer")
        return response

    def receive_frame(self) -> bytes:
        """The next frame, without its length. Raises as `receive` does."""
        (size,) = LENGTH.unpack(self._receive(LENGTH.size))
        if not 0 <= size <= RESPONSE_BYTES_MAX:
            raise ProtocolError(f"an answer announces {size} bytes")
        return self._receive(size)

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self._socket.recv(size - len(received))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ConnectionClosedError(f"closed after {len(received)} of {size} bytes")
            received += piece
        return bytes(received)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

"""One connection to a broker, one request at a time: what loads prepare and clean up with.

It does nothing by itself: no retries, no reconnecting, no thread. Its socket blocks, with the
kernel's own timeouts, so that receiving is one system call and not two.
"""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...client.errors import UnsupportedByBrokerError
from ...client.network.api_version_ranges import ApiVersionRanges
from ...common.errors import ErrorCode
from ...protocol import messages
from ...protocol.api_keys import ApiKey
from ...protocol.errors import ProtocolError
from ...protocol.headers import read_response_header, request_header
from ..errors import BenchError, Unavailable

if TYPE_CHECKING:
    from ...protocol.codec.message import Message

CLIENT_ID = "odradek-bench"
CONNECT_SECONDS_MAX = 10.0
ANSWER_SECONDS_MAX = 60
"""A broker that is silent for so long is given up."""
ANSWER_BYTES_MAX = 128 << 20
CORRELATION_ID = 7
"""Of every request: answers come in the order of their requests."""

_unpack_length = struct.Struct(">i").unpack_from
_pack_length = struct.Struct(">i").pack


class Wire:
    """A connection; a context manager that closes it.

    Args:
        host: of the broker.
        port: of the broker.
        tls: how TLS is spoken; None: it is not.
        versions: what the broker serves, if that is known; ApiVersions is sent otherwise.

    Raises:
        BenchError: it cannot be opened, or what answers is no broker.
    """

    def __init__(
        self,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        versions: ApiVersionRanges | None = None,
    ) -> None:
        self.host, self.port = host, port
        self.peer = f"{host}:{port}"
        self.socket = _opened(host, port, tls)
        try:
            self.versions = versions or self._ask_versions()
        except BaseException:
            self.close()
            raise

    def version(self, api_key: ApiKey, newest: int | None = None) -> int:
        """The newest version of an API that both sides have.

        Args:
            api_key: which API.
            newest: none above this.

        Raises:
            Unavailable: there is none.
        """
        try:
            return self.versions.usable(api_key, version_max=newest)
        except UnsupportedByBrokerError as error:
            raise Unavailable(f"{self.peer}: {error}") from error

    def ask(self, request: Message, version: int | None = None) -> Any:
        """Send a request and return its answer, which may hold errors.

        Args:
            request: what to ask.
            version: of the request; the newest that both sides have if left out.

        Raises:
            BenchError: the connection broke, or the answer is none.
        """
        api_key = ApiKey(type(request).api_key or 0)
        if version is None:
            version = self.version(api_key)
        return self.decode(self.exchange(frame_of(request, version)), api_key, version)

    def exchange(self, frame: bytes) -> memoryview:
        """Send an encoded request and return its answer without the length. Raises: BenchError."""
        self.send(frame)
        return self.receive()

    def send(self, data: bytes | bytearray) -> None:
        """Send bytes. Raises: BenchError."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise self.broken(error) from error

    def receive(self) -> memoryview:
        """The next answer, without its length. Raises: BenchError."""
        (size,) = _unpack_length(self._exactly(4))
        self.check_size(size)
        return self._exactly(size)

    def check_size(self, size: int) -> None:
        """Raises BenchError for an answer's length that is none."""
        if not 4 <= size <= ANSWER_BYTES_MAX:
            raise BenchError(f"{self.peer} is no Kafka broker: it announced {size} bytes")

    def decode(self, answer: memoryview, api_key: ApiKey, version: int) -> Any:
        """An answer as a message.

        Args:
            answer: without its length.
            api_key: of its request.
            version: of its request.

        Raises:
            BenchError: it is none.
        """
        try:
            correlation_id, position = read_response_header(answer, api_key, version)
            if correlation_id != CORRELATION_ID:
                raise BenchError(f"{self.peer} answered a request that nobody made")
            return messages.response_message(api_key).decoder(version)(answer, position)[0]
        except ProtocolError as error:
            raise BenchError(
                f"{self.peer} answered {api_key.name} with no answer: {error}"
            ) from error

    def broken(self, error: OSError | None) -> BenchError:
        """What to raise when the connection has ended.

        Args:
            error: why; None: the broker closed it.
        """
        if error is None:
            return BenchError(f"{self.peer} closed the connection")
        if isinstance(error, BlockingIOError | TimeoutError | ssl.SSLWantReadError):
            return BenchError(f"{self.peer} did not answer for {ANSWER_SECONDS_MAX} s")
        return BenchError(f"the connection to {self.peer} broke: {error}")

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exactly(self, size: int) -> memoryview:
        received = memoryview(bytearray(size))
        got = 0
        while got < size:
            try:
                count = self.socket.recv_into(received[got:])
            except OSError as error:
                raise self.broken(error) from error
            if not count:
                raise self.broken(None)
            got += count
        return received

    def _ask_versions(self) -> ApiVersionRanges:
        answer = self.ask(messages.ApiVersionsRequest(), 0)
        check(answer.error_code, "ApiVersions", self.peer)
        return ApiVersionRanges.of(answer)


def wire_to(address: str) -> Wire:
    """A connection to `host:port`. Raises: BenchError."""
    host, _, port = address.rpartition(":")
    return Wire(host, int(port))


def frame_of(request: Message, version: int) -> bytes:
    """A request as it is sent."""
    api_key = type(request).api_key
    assert api_key is not None
    header = request_header(api_key, version, CORRELATION_ID, CLIENT_ID)
    body = b"".join([header, *type(request).encoder(version)(request)])
    return _pack_length(len(body)) + body


def check(error_code: int, what: str, peer: str, allowed: Sequence[int] = ()) -> None:
    """Raise BenchError for an error code.

    Args:
        error_code: in an answer.
        what: the API's name, and of what.
        peer: who answered.
        allowed: codes that are no failure.
    """
    if error_code and error_code not in allowed:
        raise refused(error_code, what, peer)


def refused(error_code: int, what: str, peer: str) -> BenchError:
    """The error for an error code that a broker answered."""
    try:
        name = ErrorCode(error_code).name
    except ValueError:
        name = f"error {error_code}"
    return BenchError(f"{peer} answered {what} with {name}")


def _opened(host: str, port: int, tls: ssl.SSLContext | None) -> socket.socket:
    try:
        opened = socket.create_connection((host, port), CONNECT_SECONDS_MAX)
    except OSError as error:
        raise BenchError(
            f"no broker answers at {host}:{port}: {error.strerror or error}"
        ) from error
    try:
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            opened = tls.wrap_socket(opened, server_hostname=host)
        opened.settimeout(None)
        if sys.platform != "win32":
            limit = struct.pack("ll", ANSWER_SECONDS_MAX, 0)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        else:
            opened.settimeout(ANSWER_SECONDS_MAX)
    except ssl.SSLCertVerificationError as error:
        opened.close()
        raise BenchError(
            f"the certificate of {host}:{port} is not accepted: {error.verify_message}"
        ) from error
    except OSError as error:
        opened.close()
        raise BenchError(f"{host}:{port} cannot be spoken to: {error}") from error
    return opened

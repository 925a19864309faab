"""One request by HTTP, with a timeout for the connection and another for the answer."""

from __future__ import annotations

from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.request import HTTPHandler, HTTPSHandler, Request, build_opener


class _Connection(HTTPConnection):
    """Takes the connection's timeout at first, the answer's afterwards."""

    def __init__(self, *arguments: Any, read_seconds: float, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._read_seconds = read_seconds

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(self._read_seconds)


class _SecureConnection(_Connection, HTTPSConnection):
    """The same with TLS, by the system's authorities."""


class _Handler(HTTPHandler, HTTPSHandler):
    def __init__(self, read_seconds: float) -> None:
        super().__init__()
        self._read_seconds = read_seconds

    def http_open(self, request: Request) -> HTTPResponse:
        return self.do_open(partial(_Connection, read_seconds=self._read_seconds), request)

    def https_open(self, request: Request) -> HTTPResponse:
        return self.do_open(partial(_SecureConnection, read_seconds=self._read_seconds), request)


def open_url(
    request: Request, connect_seconds: float, read_seconds: float, bytes_max: int
) -> bytes:
    """The answer, as far as `bytes_max`.

    Args:
        request: to a URL of http or https.
        connect_seconds: within which there is to be a connection.
        read_seconds: for which the other side may be silent.
        bytes_max: what is longer is cut.

    Raises:
        OSError: there is none, or it is an error.
        ValueError: the URL is not one.
    """
    opener = build_opener(_Handler(read_seconds))
    try:
        with opener.open(request, timeout=connect_seconds) as response:
            answer: bytes = response.read(bytes_max)
    except HTTPException as error:
        raise OSError(f"it does not speak HTTP: {error!r}") from error
    return answer

"""A port kept for one server, also while that server is down.

A port that nobody is bound to is given to whoever asks the system for any: another listener, or
a connection that goes out. A broker that was killed might then find another program where its
clients look for it. A socket that is bound there and does not listen keeps the port from being
given away, and clients are refused as if nobody were there. On Linux it is not in the way of a
listener that sets SO_REUSEADDR, which servers do (odradek, Kafka, ZooKeeper, trio, asyncio);
where a system sees that otherwise, nothing is held.
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self


class HeldPort:
    """Keeps a port until it is closed; a context manager.

    Args:
        port: which one; 0 takes a free one.
        host: the address that the server is to listen at.

    Attributes:
        port: the port.
        is_held: whether it is kept; if not, it was free a moment ago.

    Raises:
        OSError: the port cannot be had: somebody listens there, or the address is no machine's.
    """

    def __init__(self, port: int = 0, host: str = "127.0.0.1") -> None:
        self._host = host
        self._socket = _bound(host, port)
        self.port = int(self._socket.getsockname()[1])
        self.is_held = _lets_listen(host, self.port)
        if not self.is_held:
            self._socket.close()

    @property
    def address(self) -> str:
        """host:port."""
        return f"{self._host}:{self.port}"

    def close(self) -> None:
        """Keep it no more; it may be called again."""
        self.is_held = False
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Of an owner that was only forgotten: there is nobody to be warned.
        with contextlib.suppress(AttributeError):
            self._socket.close()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
    except BaseException:
        made.close()
        raise
    return made


def _lets_listen(host: str, port: int) -> bool:
    """Whether a server can listen where a port is held."""
    try:
        with _bound(host, port) as server:
            server.listen()
    except OSError:
        return False
    return True

"""Binding the sockets of a listener."""

from __future__ import annotations

import errno
import socket

from ...config.definition import ConfigError
from ...config.listeners import Listener, bind_hosts

LISTEN_BACKLOG = 128
BIND_ATTEMPTS = 16
"""How often port 0 is tried for IPv4 and IPv6 to agree on one port."""


def bind_listener(listener: Listener, option: str = "--listen") -> tuple[socket.socket, ...]:
    """The listening sockets of one listener, all on one port.

    `localhost` and an empty host have two address families; one that the machine lacks is
    left out.

    Args:
        listener: where.
        option: by which a user can choose another address, for the error's text.

    Raises:
        ConfigError: no socket could be bound.
    """
    for _ in range(BIND_ATTEMPTS):
        sockets: list[socket.socket] = []
        port = listener.port
        try:
            for host in bind_hosts(listener):
                sock = _bind(host, port, len(bind_hosts(listener)) > 1)
                if sock is not None:
                    sockets.append(sock)
                    port = sock.getsockname()[1]
        except OSError as error:
            for sock in sockets:
                sock.close()
            if listener.port == 0 and error.errno == errno.EADDRINUSE:
                continue  # the port that IPv4 was given is taken for IPv6
            raise ConfigError(_bind_failure(listener, option, error)) from error
        if sockets:
            return tuple(sockets)
        raise ConfigError(f"Cannot listen on {listener.address}: this machine has no such address.")
    raise ConfigError(f"Cannot listen on {listener.address}: no port is free for all addresses.")


def _bind(host: str, port: int, may_lack: bool) -> socket.socket | None:
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
    except socket.gaierror as error:
        raise OSError(errno.EADDRNOTAVAIL, f"{host} is not known: {error}") from error
    family, kind, protocol, _, address = found[0]
    try:
        sock = socket.socket(family, kind, protocol)
    except OSError:
        if may_lack:
            return None
        raise
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(address)
        sock.listen(LISTEN_BACKLOG)
    except OSError as error:
        sock.close()
        if may_lack and family == socket.AF_INET6 and error.errno == errno.EADDRNOTAVAIL:
            return None
        raise
    return sock


def _bind_failure(listener: Listener, option: str, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Cannot listen on {listener.address}: another program does. Stop it, or choose "
            f"another port ({option} HOST:PORT; port 0 takes a free one)."
        )
    if error.errno == errno.EACCES:
        return (
            f"Cannot listen on {listener.address}: the system allows ports below 1024 to "
            "root only. Choose a higher one."
        )
    return f"Cannot listen on {listener.address}: {error.strerror or error}."

"""Serving a console over HTTP, in a trio task."""

from __future__ import annotations

import logging
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve as serve_app

from .app import make_app

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

    from ..client.client import KafkaClient
    from .settings import ConsoleSettings

logger = logging.getLogger(__name__)

CONNECTIONS_WAITING_MAX = 128
HEAD_BYTES_MAX = 16 << 10
IDLE_SECONDS_MAX = 60
STOP_SECONDS_MAX = 1.0

LOCALHOST = ("127.0.0.1", "::1")


def bind(settings: ConsoleSettings) -> list[socket.socket]:
    """The sockets that a console listens on: of `localhost` both, as browsers may try either.

    Raises:
        OSError: none of them can be had.
    """
    hosts = LOCALHOST if settings.host == "localhost" else (settings.host,)
    sockets: list[socket.socket] = []
    port = settings.port
    for host in hosts:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            bound = socket.create_server(
                (host, port), family=family, backlog=CONNECTIONS_WAITING_MAX
            )
        except OSError:
            if not sockets:
                raise
            continue  # a machine without IPv6, or with another program there
        sockets.append(bound)
        port = bound.getsockname()[1]
    return sockets


async def serve(
    settings: ConsoleSettings, client: KafkaClient, sockets: Sequence[socket.socket]
) -> None:
    """Serve until cancelled.

    Args:
        settings: with the port that the sockets have.
        client: is open, and stays so.
        sockets: are closed in the end.
    """
    config = Config()
    config.bind = [f"fd://{each.detach()}" for each in sockets]
    config.h11_max_incomplete_size = HEAD_BYTES_MAX
    config.keep_alive_timeout = IDLE_SECONDS_MAX
    config.graceful_timeout = STOP_SECONDS_MAX
    config.include_server_header = False
    config.accesslog = None
    config.errorlog = logger
    async with trio.open_nursery() as nursery:
        app = cast("ASGIFramework", make_app(settings, client, nursery))
        await serve_app(app, config, mode="asgi")

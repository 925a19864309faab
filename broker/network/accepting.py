"""Accepting connections in a task: no failure of one of them, or of accepting, ends it."""

from __future__ import annotations

import errno
import logging
import socket

import trio

from .connection import peer_name
from .counted_streams import CountedStreams, ServeSocket

logger = logging.getLogger(__name__)

ACCEPT_AGAIN_SECONDS = 1

OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


async def accept_all(
    listening: socket.socket, serve: ServeSocket, counted: CountedStreams | None = None
) -> None:
    """Accept until cancelled; each connection is a task, and is closed at its end.

    Args:
        listening: it stays open, so that this may be called again.
        serve: serves a connection; what it raises is logged.
        counted: counts the connections of clients, and says how many there may be.
    """
    listening.setblocking(False)
    sock = trio.socket.from_stdlib_socket(listening)
    async with trio.open_nursery() as nursery:
        while True:
            if counted is not None:
                await counted.wait_for_slot()
            try:
                # Without descriptors accepting fails even where nobody waits.
                await trio.lowlevel.wait_readable(listening)
                accepted, address = await sock.accept()
            except OSError as error:
                if error.errno in OUT_OF_DESCRIPTORS and counted is not None and counted.make_way():
                    await trio.lowlevel.checkpoint()  # in which it is closed
                elif error.errno != errno.ECONNABORTED:  # the peer went before it was accepted
                    logger.error("cannot accept connections: %s; trying again", error)
                    await trio.sleep(ACCEPT_AGAIN_SECONDS)
                continue
            nursery.start_soon(_serve, serve, counted, accepted, peer_name(address))


async def _serve(
    serve: ServeSocket, counted: CountedStreams | None, sock: trio.socket.SocketType, peer: str
) -> None:
    """One connection; whatever goes wrong with it is no other's trouble."""
    try:
        if counted is None:
            await serve(sock, peer)
        else:
            await counted.serve(serve, sock, peer)
    except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
        logger.info("the connection from %s broke: %s", peer, error)
    except Exception:
        logger.exception("the connection from %s failed", peer)
    finally:
        sock.close()

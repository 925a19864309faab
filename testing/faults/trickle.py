"""An answer that goes out a piece at a time, as over a slow line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .buffers import split, total_size

if TYPE_CHECKING:
    from ...broker.network.connection import Connection
    from ...broker.request.requests import Request

PIECE_MS = 50
"""A piece is what the line carries in this time."""

After = Callable[[int, Callable[[], None]], None]
"""Calls a function after some milliseconds."""


class Piece:
    """A part of an answer in the order of a connection's answers."""

    __slots__ = ("buffers",)

    def __init__(self, buffers: list[Any] | None) -> None:
        self.buffers = buffers


class Trickle:
    """Sends one answer piece by piece. What comes behind it on the connection waits.

    Args:
        request: whose place in the order it takes.
        buffers: the framed answer.
        bytes_per_second: how fast it goes.
        after: calls back later.
        wait_ms: before the first piece, for what the line has carried before.
        note_sent: told how many milliseconds the line is busy with each piece.
    """

    def __init__(
        self,
        request: Request,
        buffers: list[Any],
        bytes_per_second: int,
        after: After,
        note_sent: Callable[[float], None],
    ) -> None:
        self._connection: Connection = request.connection
        self._rest = buffers
        self._bytes_per_second = bytes_per_second
        self._after = after
        self._note_sent = note_sent
        self._last = Piece(None)
        order = self._connection.unanswered
        order[order.index(request)] = self._last

    def start(self, wait_ms: int) -> None:
        """Begin after some milliseconds, when the line has carried what was before."""
        if wait_ms > 0:
            self._after(wait_ms, self._send_piece)
        else:
            self._send_piece()

    def _send_piece(self) -> None:
        connection = self._connection
        if connection.is_closed:
            return
        size = max(self._bytes_per_second * PIECE_MS // 1000, 1)
        buffers, self._rest = split(self._rest, size)
        sent = total_size(buffers)
        connection.unsent_bytes += sent
        busy_ms = sent * 1000 / self._bytes_per_second
        self._note_sent(busy_ms)
        if self._rest:
            order = connection.unanswered
            order.insert(order.index(self._last), Piece(buffers))
            self._after(max(int(busy_ms), 1), self._send_piece)
        else:
            self._last.buffers = buffers
        connection.note_answered()
